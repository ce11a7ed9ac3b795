package worker

import (
	"context"
	"testing"
	"time"

	"floodgate/lua"
	"floodgate/sale"
)

// A page full of rows that cannot be announced, since their activity's stock is lost, does not keep others from being told.
func TestUnannouncedOfALostActivityHoldUpNobody(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		lost, sells := w.activity(announceLimit, 1), w.activity(1, 1)
		w.opened2(sells)
		one := w.worker()
		defer one.Listener.Close()
		must(w.t, one.mint.lease(t.Context()))
		place := func(id sale.ID, at sale.Millis, users int) {
			rows := make([]sale.Order, users)
			for i := range rows {
				user := sale.ID(i + 1)
				no, err := one.mint.next(user)
				must(w.t, err)
				rows[i] = sale.Order{No: no, Token: w.token(user, id), User: user, Activity: id, Commodity: commodity, Quantity: 1,
					Slots: []int{0}, Source: sale.FromQueue, CreatedAt: at, UpdatedAt: at, PayBy: at + 60_000}
			}
			p, err := w.store.Place(t.Context(), id, commodity, 1, rows)
			must(w.t, err)
			if len(p.Inserted) != users {
				w.t.Fatalf("%d of %d placed", len(p.Inserted), users)
			}
		}
		now := sale.At(time.Now())
		place(lost.ID, now-120_000, announceLimit)
		place(sells.ID, now-60_000, 1)
		rows, err := w.store.OrdersOfActivity(t.Context(), sells.ID, 0, 10, true)
		must(w.t, err)
		_, _, err = w.ledger.Claim(context.Background(), lua.Cell{Activity: sells.ID}, []lua.ClaimRequest{{Token: rows[0].Token, User: 1, Commodity: commodity, Quantity: 1, Price: 9900}})
		must(w.t, err)
		for range 2 {
			must(w.t, one.sweepUnannounced(t.Context()))
		}
		select {
		case told := <-one.announced.told:
			if len(told) != 1 || told[0].Activity != sells.ID {
				w.t.Fatalf("told %d orders", len(told))
			}
		default:
			w.t.Fatal("the order of the activity that sells was not told in two turns")
		}
	})
}
