package worker

import (
	"context"
	"errors"
	"testing"

	"floodgate/lua"
	"floodgate/sale"
)

// A worker that is stopping while the database hangs finishes what it has begun and begins nothing for those who have gone: their
// batches, which came behind, would each take as long again.
func TestNothingIsBegunForWhoHasGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	a := w.activity(5, 1)
	w.opened2(a)
	one := w.worker()
	defer one.Listener.Close()
	must(t, one.mint.lease(t.Context()))
	gone, leave := context.WithCancel(t.Context())
	leave()
	newJob := func(ctx context.Context, user sale.ID) *job {
		m := w.reserve(a, user)
		return &job{cell: lua.Cell{Activity: a.ID}, source: sale.FromQueue, given: ctx, done: make(chan error, 1),
			claims: []lua.ClaimRequest{{Token: m.Token, User: m.User, Commodity: m.Commodity, Quantity: 1, Price: m.Price}}}
	}
	left, waits := newJob(gone, 1), newJob(t.Context(), 2)
	one.placeAll(t.Context(), []*job{left, waits})
	if err := <-left.done; !errors.Is(err, context.Canceled) {
		t.Fatalf("who has gone was answered %v", err)
	}
	must(t, <-waits.done)
	rows, err := w.store.OrdersByToken(t.Context(), left.claims[0].Token, waits.claims[0].Token)
	must(t, err)
	if len(rows) != 1 || rows[0].Token != waits.claims[0].Token {
		t.Fatalf("rows %+v", rows)
	}
}
