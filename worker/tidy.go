package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// tidyEvery is how often what expired activities leave behind is cleared: each edge reads every activity of the set each second.
const tidyEvery = time.Minute

// tidy clears what nobody else would: activities whose keys have expired leave the set that all edges read, and messages that were put
// aside for an activity that is over are settled as those that come late are.
func (w *Worker) tidy(ctx context.Context) error {
	return every(ctx, tidyEvery, nil, func(ctx context.Context) {
		for _, step := range []func(context.Context) error{w.dropExpired, w.clearShelf} {
			if err := step(ctx); err != nil && ctx.Err() == nil {
				w.log.Warn("tidy", "error", err)
			}
		}
	})
}

// dropExpired takes activities out of Redis that are over by the database and by both clocks: one that was set wrong must not take a
// sale away. What the database does not know is not ours to take.
func (w *Worker) dropExpired(ctx context.Context) error {
	ids, err := w.ledger.Activities(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, id := range ids {
		if err := w.dropIfExpired(ctx, id); err != nil {
			faults = append(faults, fmt.Errorf("activity %s: %w", id, err))
		}
		if len(faults) == 3 || ctx.Err() != nil { // Redis or the database does not answer
			break
		}
	}
	return errors.Join(faults...)
}

func (w *Worker) dropIfExpired(ctx context.Context, id sale.ID) error {
	a, err := w.activity(ctx, id)
	if errors.Is(err, sql.ErrNotFound) {
		return nil
	}
	if err != nil || w.now() < a.Expires() {
		return err
	}
	cell := lua.Cell{Activity: id}
	s, err := w.ledger.Inspect(ctx, cell)
	if err != nil || s.Now < a.Expires() {
		return err
	}
	return w.ledger.Drop(ctx, cell)
}

// clearShelf settles messages on the shelf whose activity is over by their rows; those without one are dead letters.
func (w *Worker) clearShelf(ctx context.Context) error {
	ids, err := w.store.ShelvedActivities(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if known, err := w.knows(ctx, id); err != nil || known {
			if err != nil {
				return err
			}
			continue
		}
		messages, err := w.store.Shelved(ctx, id, shelfLimit)
		if err != nil {
			return err
		}
		if err := w.bury(ctx, messages); err != nil {
			return err
		}
		if err := w.unshelve(ctx, messages); err != nil {
			return err
		}
	}
	return nil
}
