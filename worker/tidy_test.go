package worker

import (
	"context"
	"slices"
	"testing"
	"time"

	"floodgate/lua"
	"floodgate/sale"
)

// What is over leaves the set of activities that every edge reads each second, and the shelf; what still runs, or is not in this
// database, stays.
func TestWhatExpiredActivitiesLeaveBehindIsCleared(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		over, runs, foreign := w.activity(3, 1), w.activity(3, 1), w.activity(3, 1)
		w.opened2(over)
		w.opened2(runs)
		foreign.ID++
		_, err := w.ledger.Open(t.Context(), foreign.Activity, 1, map[sale.ID]int64{commodity: 1})
		must(w.t, err)
		w.t.Cleanup(func() { _ = w.ledger.Drop(context.Background(), lua.Cell{Activity: foreign.ID}) })
		m, waits := w.reserve(over, 1), w.reserve(runs, 1)
		must(w.t, w.store.Shelve(t.Context(), []sale.Message{m, waits}))
		past := sale.At(time.Now().Add(-72 * time.Hour))
		must(w.t, w.store.SetWindow(t.Context(), over.ID, past-1000, past))
		one := w.worker()
		defer one.Listener.Close()
		must(w.t, one.dropExpired(t.Context()))
		must(w.t, one.clearShelf(t.Context()))
		ids, err := w.ledger.Activities(t.Context())
		must(w.t, err)
		if slices.Contains(ids, over.ID) || !slices.Contains(ids, runs.ID) || !slices.Contains(ids, foreign.ID) {
			w.t.Fatalf("over %s, runs %s, foreign %s: still there: %v", over.ID, runs.ID, foreign.ID, ids)
		}
		shelved, err := w.store.ShelvedActivities(t.Context())
		must(w.t, err)
		letters, err := w.queue.List(t.Context(), 10)
		must(w.t, err)
		if !slices.Equal(shelved, []sale.ID{runs.ID}) || len(letters) != 1 {
			w.t.Fatalf("on the shelf %v, want %s; %d letters", shelved, runs.ID, len(letters))
		}
	})
}
