package worker

import (
	"testing"

	"floodgate/lua"
	"floodgate/sql"
)

// A lot that was added before the activity opened is in its total already: it must not reach Redis twice.
func TestStockAddedBeforeOpeningIsCountedOnce(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		_, err := w.store.AddLot(t.Context(), sql.Lot{Operation: "early-" + a.ID.String(), Activity: a.ID, Commodity: commodity, Units: 2})
		must(t, err)
		w.start(1)
		w.opened(a)
		w.eventually("the lot is applied", func() bool {
			lots, err := w.store.LotsToApply(t.Context(), a.ID)
			return err == nil && len(lots) == 0
		})
		s, err := w.ledger.Inspect(t.Context(), lua.Cell{Activity: a.ID})
		must(t, err)
		if s.Remaining[commodity] != 5 {
			t.Errorf("%d remain, want 5", s.Remaining[commodity])
		}
		w.balanced(a)
	})
}
