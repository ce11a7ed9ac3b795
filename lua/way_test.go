package lua

import (
	"testing"

	"floodgate/sale"
)

// One purchase all the way, and back.
func TestOnePurchaseAndItsReturn(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.open(t, 2)
		r := w.reserve(t, wish(1))
		if r.Answers[0].Code != Reserved || r.Remaining != 1 || r.Epoch != 1 || r.LedgerID == "" || r.Pending != string(wish(1).Token) {
			t.Fatalf("reserve: %+v", r)
		}
		if err := w.Enqueued(w.ctx, w.cell, r.Pending); err != nil {
			t.Fatal(err)
		}
		claim := ClaimRequest{Token: wish(1).Token, User: wish(1).User, Commodity: item, Quantity: 1, Price: price}
		answers, epoch, err := w.Claim(w.ctx, w.cell, []ClaimRequest{claim})
		if err != nil || epoch != 1 || answers[0].Code != Reserved || answers[0].Reservation.Price != price {
			t.Fatalf("claim: %+v %d %v", answers, epoch, err)
		}
		s := settlement(wish(1), sale.PendingPayment)
		if codes := must[[]Code](t)(w.Commit(w.ctx, w.cell, []Settlement{s})); codes[0] != Reserved {
			t.Fatalf("commit: %v", codes)
		}
		s.Outcome.Outcome = sale.Closed
		if codes := must[[]Code](t)(w.Release(w.ctx, w.cell, []Settlement{s, s})); codes[0] != Reserved || codes[1] != Again {
			t.Fatalf("release: %v", codes)
		}
		st := must[State](t)(w.Inspect(w.ctx, w.cell))
		if !st.Opened || !st.Proven || st.Remaining[item] != 2 || st.Reserved != 1 || st.Catalog.ID != w.cell.Activity {
			t.Fatalf("inspect: %+v", st)
		}
		entries := must[[]Entry](t)(w.Ledger.Ledger(w.ctx, w.cell, r.LedgerID, 10))
		if len(entries) != 2 || entries[0].Fields["op"] != "commit" || entries[1].Fields["op"] != "release" {
			t.Fatalf("ledger: %+v", entries)
		}
	})
}

func settlement(r ReserveRequest, outcome sale.Code) Settlement {
	return Settlement{Outcome: sale.Outcome{User: r.User, Token: r.Token, Outcome: outcome, OrderNo: 1 << 61, PayBy: 5, At: 7},
		Commodity: item, Quantity: r.Quantity}
}
