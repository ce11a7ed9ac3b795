package lua

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/sale"
)

// Keys appear, vanish when they are empty and appear again; whatever happens, each one that is there expires with its
// activity, and describe moves them all.
func TestEveryKeyExpiresWithItsActivity(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		check := func(after string) {
			t.Helper()
			for _, key := range keysOf(w.cell) {
				at := must[time.Duration](t)(w.rdb.PExpireTime(w.ctx, key).Result())
				late := sale.Millis(at.Milliseconds()) - w.sale.Expires() // miniredis counts from now and is some ms off
				if at != -2 && (late < -1000 || late > 1000) {
					t.Fatalf("after %s: %s expires at %d, want %d", after, key, at.Milliseconds(), w.sale.Expires())
				}
			}
		}
		allDue := func() {
			t.Helper()
			key := keysOf(w.cell)[keyPending]
			for _, member := range must[[]string](t)(w.rdb.ZRange(w.ctx, key, 0, -1).Result()) {
				must[int64](t)(w.rdb.ZAddXX(w.ctx, key, redis.Z{Score: 1, Member: member}).Result())
			}
			must[[]sale.Reservation](t)(first(w.Due(w.ctx, w.cell, 64)))
		}
		w.open(t, 5)
		check("open")
		for range 3 {
			w.reserve(t, wish(1))
			check("reserve")
			must[[]Code](t)(w.Commit(w.ctx, w.cell, []Settlement{settlement(wish(1), sale.Paid)}))
			allDue() // pending is empty and gone
			w.reserve(t, wish(2))
			check("reserve without pending")
			must[[]Code](t)(w.Release(w.ctx, w.cell, []Settlement{settlement(wish(1), sale.Closed), settlement(wish(2), sale.Failed)}))
			check("release") // buyers is empty and gone
			allDue()
			if n := must[int64](t)(w.rdb.Exists(w.ctx, keysOf(w.cell)[keyBuyers], keysOf(w.cell)[keyRes], keysOf(w.cell)[keyPending]).Result()); n != 0 {
				t.Fatalf("%d of buyers, res and pending are left", n)
			}
			must[[]ClaimAnswer](t)(first(w.Claim(w.ctx, w.cell, []ClaimRequest{{wish(3).Token, wish(3).User, item, 1, price, 1}})))
			check("claim")
			must[[]Code](t)(w.Release(w.ctx, w.cell, []Settlement{settlement(wish(3), sale.Failed)}))
			allDue()
			allDue()
		}
		w.reserve(t, wish(4))
		w.sale.EndsAt += 3_600_000
		if err := w.Describe(w.ctx, w.sale); err != nil {
			t.Fatal(err)
		}
		check("describe")
		must[Code](t)(w.RebuildBegin(w.ctx, w.cell, 2))
		r := must[map[sale.Token]sale.Reservation](t)(w.Reservations(w.ctx, w.cell, wish(4).Token))[wish(4).Token]
		must[Code](t)(w.RebuildPage(w.ctx, w.cell, 2, []sale.Reservation{r}, []sale.Token{wish(5).Token}))
		must[Code](t)(w.RebuildEnd(w.ctx, w.sale, 2, map[sale.ID]int64{item: 4}))
		check("rebuild")
	})
}
