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

// BenchmarkAccept is the way from the path to accepted on real Redis, with a queue that answers at once: gathered, and
// with a reserve call and a send for each. The load runs in the same process.
func BenchmarkAccept(b *testing.B) {
	for name, single := range map[string]bool{"gathered": false, "single": true} {
		b.Run(name, func(b *testing.B) {
			a := newActivity(sale.MaxTotal, 1)
			s := newShop(b, onRealRedis(b), selling(a), func(s *setup) { s.cfg.Single = single })
			path := buyPath(a, 0)
			b.SetParallelism(128)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				ctx := requestOf(path)
				for pb.Next() {
					u := newID()
					ctx.Request.Header.Set("Authorization", "Bearer "+s.jwt(u))
					ctx.Request.SetBodyString(buyBody(s.requestToken(u, a.ID), "1"))
					ctx.Response.Reset()
					s.edge.serve(ctx)
					if ctx.Response.StatusCode() != fasthttp.StatusAccepted {
						b.Errorf("%s", ctx.Response.Body())
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "accepted/s")
			b.ReportMetric(float64(b.N)/float64(s.queue.sends), "messages/send")
		})
	}
}
