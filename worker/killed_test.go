package worker

import (
	"testing"

	"floodgate/lua"
	"floodgate/sale"
)

// A recoverer is killed when it has dropped the stock and has not written it again. That is no loss of Redis: the next
// one goes on, and what was reserved and reached no queue is kept.
func TestRecovererKilledInTheMidstOfItsWriting(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		w.opened2(a)
		m := w.reserve(a, 1)
		one := w.worker()
		defer one.Listener.Close()
		p := &proof{cell: lua.Cell{Activity: a.ID}}
		must(t, w.ledger.Unprove(t.Context(), p.cell))
		var err error
		p.epoch, err = w.store.RaiseEpoch(t.Context(), a.ID)
		must(t, err)
		must(t, one.begin(t.Context(), p)) // and dies here
		w.start(1)
		if o := w.order(m.Token); o.State != sale.StatePending {
			t.Fatalf("order %s (%s)", o.State.Outcome(), o.Reason)
		}
		w.opened(a)
		w.balanced(a)
		w.reserve(a, 2)
	})
}
