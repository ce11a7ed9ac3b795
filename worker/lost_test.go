package worker

import (
	"testing"
	"time"

	"floodgate/lua"
	"floodgate/sale"
)

// An activity that a real Redis lost is counted for as long as it is lost; one that is over by Redis's clock was not lost, and is
// not built anew either.
func TestLostIsCountedAndOverIsNot(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		w.opened2(a)
		a, err := w.store.Activity(t.Context(), a.ID)
		must(w.t, err)
		must(w.t, w.ledger.Drop(t.Context(), lua.Cell{Activity: a.ID}))
		one := w.worker()
		defer one.Listener.Close()
		over := a
		over.EndsAt = sale.At(time.Now().Add(-72 * time.Hour))
		if due, err := one.follow(t.Context(), over); due || err != nil || one.lostNow != 0 {
			w.t.Fatalf("over: recovery %v, %v, %d lost", due, err, one.lostNow)
		}
		lost := 1
		if w.embedded {
			lost = 0 // rebuilt at once
		}
		if due, err := one.look(t.Context()); len(due) != 1-lost || err != nil || one.lostNow != lost {
			w.t.Fatalf("lost: recovery of %d, %v, %d lost", len(due), err, one.lostNow)
		}
		must(w.t, w.store.SetWindow(t.Context(), a.ID, over.EndsAt-1000, over.EndsAt))
		if _, err := one.look(t.Context()); err != nil || one.lostNow != 0 {
			w.t.Fatalf("over: %v, %d lost", err, one.lostNow)
		}
	})
}
