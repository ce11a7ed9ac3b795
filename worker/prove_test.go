package worker

import (
	"context"
	"errors"
	"testing"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sql"
)

// away is a queue whose broker does not answer.
type away struct{ mq.Backlog }

func (away) Ends(context.Context) ([]mq.Position, error) {
	return nil, errors.New("the broker is away")
}

// A recovery that waits for a broker that is away keeps no new activity from being opened.
func TestARecoveryThatWaitsHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		waits := w.activity(3, 1)
		w.opened2(waits)
		w.restart(waits)
		one := w.worker()
		one.Backlog = away{w.queue}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- one.Run(ctx) }()
		w.t.Cleanup(func() { cancel(); must(w.t, <-done) })
		w.eventually("a recovery drains", func() bool {
			s, err := w.ledger.Inspect(t.Context(), lua.Cell{Activity: waits.ID})
			return err == nil && s.Recovering
		})
		w.opened(w.activity(3, 1))
	})
}

// What was proven since it was seen is not recovered again.
func TestAProvenStockIsNotProvenAgain(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		w.opened2(a)
		epoch := w.epoch(a)
		one := w.worker()
		defer one.Listener.Close()
		must(w.t, one.recover(t.Context(), []sql.Activity{a}))
		if got := w.epoch(a); got != epoch {
			w.t.Fatalf("epoch %d, %d before", got, epoch)
		}
	})
}
