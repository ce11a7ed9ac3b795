package worker

import (
	"context"
	"time"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sql"
)

// drainPoll is how often the drain looks whether the queue's old messages are all placed.
const drainPoll = 50 * time.Millisecond

// drain is step 4: what was in the queue when Redis had been written is placed, nothing lies on the shelf or in a retry topic, and
// the time has passed in which an edge may still be sending what it reserved before. A queue that does not answer is waited for.
func (w *Worker) drain(ctx context.Context, proofs []*proof) error {
	w.unready("recovering: the queue is being drained")
	select { // an edge that is slower than this asks reserve again before it says accepted
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lua.Grace):
	}
	var ends []mq.Position
	renewed, told := time.Now(), false
	for {
		err := w.stands(ctx, proofs)
		if err != nil {
			return err
		}
		if ends == nil {
			ends, err = w.Backlog.Ends(ctx)
		}
		done := false
		if err == nil {
			done, err = w.drained(ctx, ends, proofs)
		}
		if done || ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !told {
			told = true
			w.log.Warn("the recovery waits for queue and database", "error", err)
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

// stands says why this recovery cannot end: another epoch stands in the database, or Redis is another process again. Nothing can be
// placed then, so it would drain for ever; the next turn starts over.
func (w *Worker) stands(ctx context.Context, proofs []*proof) error {
	for _, p := range proofs {
		held, err := w.store.HoldsEpoch(ctx, p.cell.Activity, p.epoch)
		if err != nil {
			return err
		}
		if !held {
			return sql.ErrFenced
		}
		s, err := w.ledger.Inspect(ctx, p.cell)
		if err != nil {
			return err
		}
		if !s.Proven || s.Epoch != p.epoch {
			return lua.ErrUnproven
		}
	}
	return nil
}

// drained compares the recorded positions with the queue's ends, and looks at the retry topic and the shelf. The shelf comes last: a
// worker puts messages there before it records their position, so one that does while we look is seen in one of the two.
func (w *Worker) drained(ctx context.Context, ends []mq.Position, proofs []*proof) (bool, error) {
	placed, err := w.store.PlacedPositions(ctx, w.Topic)
	if err != nil {
		return false, err
	}
	for _, e := range ends {
		if placed[e.Queue] < e.Next {
			return false, nil
		}
	}
	if parked, err := w.Backlog.Parked(ctx); err != nil || parked > 0 {
		return false, err
	}
	for _, p := range proofs {
		shelved, err := w.store.Shelved(ctx, p.cell.Activity, 1)
		if err != nil || len(shelved) > 0 {
			return false, err
		}
	}
	return true, nil
}
