package lua

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"floodgate/deploy/stacktest"
	"floodgate/sale"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onBoth runs a test on miniredis and on the real Redis, in parallel.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) { t.Parallel(); test(t, embedded(t)) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, real(t)) })
}

// world is a ledger with one activity of the test's own.
type world struct {
	*Ledger
	ctx  context.Context
	rdb  *redis.Client
	cell Cell
	sale sale.Activity
}

func embedded(t testing.TB) *world {
	t.Helper()
	return newWorld(t, miniredis.RunT(t).Addr(), Options{Embedded: true})
}

func real(t testing.TB) *world {
	t.Helper()
	return newWorld(t, stacktest.Redis(t), Options{})
}

// newWorld opens nothing yet. Ids are above 2^53, where Lua's numbers end.
func newWorld(t testing.TB, addr string, opt Options) *world {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: 20 * time.Second})
	w := &world{Ledger: New(rdb, opt), rdb: rdb, ctx: context.Background(), cell: Cell{Activity: sale.ID(1<<62 + rand.Int64N(1<<61))}}
	t.Cleanup(func() {
		if err := w.Drop(w.ctx, w.cell); err != nil {
			t.Error(err)
		}
		rdb.Close()
	})
	now := sale.At(time.Now())
	w.sale = sale.Activity{ID: w.cell.Activity, Title: "t", StartsAt: now - 1000, EndsAt: now + 3_600_000, PerUserLimit: 1,
		PayWindow: 15 * time.Minute, Status: sale.Live, Items: []sale.Item{{Commodity: item, Title: "i", Price: price, Total: 1000}}}
	return w
}

const (
	item  sale.ID    = 9007199254740993 // 2^53 + 1
	price sale.Cents = sale.MaxPrice
)

// open opens the world's activity with n units of item.
func (w *world) open(t testing.TB, n int64) {
	t.Helper()
	must[Code](t)(w.Open(w.ctx, w.sale, 1, map[sale.ID]int64{item: n}))
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wish is a request of user u for one unit under a token of its own.
func wish(u int) ReserveRequest {
	return ReserveRequest{Token: sale.Token(fmt.Sprintf("%059d", u)), User: 1<<60 + sale.ID(u), Quantity: 1}
}

func crowd(from, n int) []ReserveRequest {
	out := make([]ReserveRequest, n)
	for i := range out {
		out[i] = wish(from + i)
	}
	return out
}

func (w *world) reserve(t testing.TB, batch ...ReserveRequest) ReserveReply {
	t.Helper()
	return must[ReserveReply](t)(w.Reserve(w.ctx, w.cell, item, price, batch))
}

func codesOf(r ReserveReply) []Code {
	out := make([]Code, len(r.Answers))
	for i, a := range r.Answers {
		out[i] = a.Code
	}
	return out
}

func count(codes []Code, c Code) (n int) {
	for _, have := range codes {
		if have == c {
			n++
		}
	}
	return n
}
