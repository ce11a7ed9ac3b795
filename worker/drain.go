package worker

import (
	"context"
	"fmt"
	"time"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sql"
)

// drainPoll is how often the drain looks whether the queue's old messages are all placed.
const drainPoll = 50 * time.Millisecond

// drain is step 4: what was in the queue when Redis had been written is placed, nothing lies on the shelf or in a retry topic, and
// the time has passed in which an edge may still be sending what it reserved before.
func (w *Worker) drain(ctx context.Context, proofs []*proof) error {
	w.unready("recovering: the queue is being drained")
	select { // an edge that is slower than this asks reserve again before it says accepted
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lua.Grace):
	}
	ends, err := w.Backlog.Ends(ctx)
	if err != nil {
		return fmt.Errorf("cannot read how far the queue goes: %w", err)
	}
	renewed := time.Now()
	for {
		done, err := w.drained(ctx, ends, proofs)
		if err != nil || done {
			return err
		}
		if time.Since(renewed) > recoveryTTL/4 {
			if err := w.hold(ctx); err != nil {
				return err
			}
			renewed = time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(drainPoll):
		}
	}
}

// drained compares the recorded positions with the queue's ends, and looks at the shelf and the retry topic. A recovery whose epoch is
// not the database's any more gives up: nothing can be placed under it, so it would drain for ever.
func (w *Worker) drained(ctx context.Context, ends []mq.Position, proofs []*proof) (bool, error) {
	for _, p := range proofs {
		held, err := w.store.HoldsEpoch(ctx, p.cell.Activity, p.epoch)
		if err != nil {
			return false, err
		}
		if !held {
			return false, sql.ErrFenced
		}
		shelved, err := w.store.Shelved(ctx, p.cell.Activity, 1)
		if err != nil || len(shelved) > 0 {
			return false, err
		}
	}
	placed, err := w.store.PlacedPositions(ctx, w.Topic)
	if err != nil {
		return false, err
	}
	for _, e := range ends {
		if placed[e.Queue] < e.Next {
			return false, nil
		}
	}
	parked, err := w.Backlog.Parked(ctx)
	return err == nil && parked == 0, err
}
