package worker

import (
	"context"
	"testing"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
)

// late is a queue of which everything is placed, where a worker that was slow shelves a message just before it is asked.
type late struct {
	mq.Backlog
	shelve func()
}

func (l late) Parked(context.Context) (int64, error) { l.shelve(); return 0, nil }

// A message that is put on the shelf, and its position recorded, while the drain looks is not overlooked between the two.
func TestDrainSeesWhatIsShelvedMeanwhile(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		w.opened2(a)
		one := w.worker()
		defer one.Listener.Close()
		m := w.reserve(a, 1)
		one.Backlog = late{w.queue, func() { must(w.t, w.store.Shelve(t.Context(), []sale.Message{m})) }}
		if done, err := one.drained(t.Context(), nil, []*proof{{cell: lua.Cell{Activity: a.ID}}}); done || err != nil {
			w.t.Fatalf("drained: %v, %v", done, err)
		}
	})
}
