package edge

import (
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"floodgate/sale"
)

// BenchmarkRefuse is the handler alone, without the socket: what a refused crowd costs. It must allocate nothing.
func BenchmarkRefuse(b *testing.B) {
	sold, later, over := newActivity(0, 1), newActivity(10, 1), newActivity(10, 1)
	later.StartsAt = later.EndsAt - 1000
	over.StartsAt, over.EndsAt = over.StartsAt-10_000_000, over.StartsAt
	s := newShop(b, selling(sold, later, over))
	eventually(b, "sold out", func() bool { return s.refusedAs(sold) == sale.SoldOut })
	unknown := newActivity(1, 1)
	for name, a := range map[string]sale.Activity{"sold_out": sold, "not_started": later, "ended": over, "not_found": unknown} {
		b.Run(name, func(b *testing.B) {
			ctx := requestOf(buyPath(a, 0))
			s.edge.serve(ctx) // the connection's first request makes its buffers
			b.ReportAllocs()
			for b.Loop() {
				ctx.Response.Reset()
				s.edge.serve(ctx)
			}
			if b.N > 1000 {
				b.ReportMetric(float64(ctx.Response.StatusCode()), "status")
			}
		})
	}
}

func requestOf(path string) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Init2(&net.TCPConn{}, nil, false)
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetRequestURI(path)
	ctx.Request.Header.SetHost("shop.test")
	ctx.Request.SetBodyString(`{"requestToken":"x","quantity":1}`)
	return ctx
}

// refusedAs asks the handler directly.
func (s *shop) refusedAs(a sale.Activity) sale.Code {
	c := newCall(requestOf(buyPath(a, 0)))
	defer c.free()
	return s.edge.route(c)
}

func TestRefusalsAllocateNothing(t *testing.T) {
	sold, later, over := newActivity(0, 1), newActivity(10, 1), newActivity(10, 1)
	later.StartsAt = later.EndsAt - 1000
	over.StartsAt, over.EndsAt = over.StartsAt-10_000_000, over.StartsAt
	s := newShop(t, selling(sold, later, over))
	eventually(t, "sold out", func() bool { return s.refusedAs(sold) == sale.SoldOut })
	for code, a := range map[sale.Code]sale.Activity{sale.SoldOut: sold, sale.NotStarted: later, sale.EndedCode: over, sale.NotFound: newActivity(1, 1)} {
		want(t, "verdict", s.refusedAs(a), code)
		ctx := requestOf(buyPath(a, 0))
		// Measured over many, because the cache's own sampling allocates once in a while.
		n := testing.AllocsPerRun(2000, func() {
			ctx.Response.Reset()
			s.edge.serve(ctx)
		})
		if n != 0 && !raceEnabled {
			t.Errorf("%s allocates %v times", code, n)
		}
	}
}
