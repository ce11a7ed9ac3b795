package worker

import (
	"testing"
	"time"

	"floodgate/lua"
	"floodgate/sale"
)

// A recovery that reads more reservations than one lease's time has room for keeps its lease meanwhile: two workers would take
// it from each other again and again, and none would ever end.
func TestRecoveryKeepsItsLeaseWhileItReads(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		w.opened2(a)
		w.reserve(a, 1)
		one := w.worker()
		defer one.Listener.Close()
		p := &proof{cell: lua.Cell{Activity: a.ID}, keep: map[sale.Token]sale.Reservation{}, slots: map[slot]bool{}, sold: map[sale.ID]int64{}}
		var err error
		p.epoch, err = w.store.RaiseEpoch(t.Context(), a.ID)
		must(t, err)
		must(t, one.begin(t.Context(), p))
		_, err = w.store.TakeLease(t.Context(), recoveryLease, one.Owner, time.Millisecond)
		must(t, err)
		must(t, one.readReservations(t.Context(), p, true))
		if taken, err := w.store.TakeLease(t.Context(), recoveryLease, "another", time.Millisecond); err != nil || taken {
			w.t.Fatalf("another took the lease in between: %v, %v", taken, err)
		}
	})
}
