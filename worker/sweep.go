package worker

import (
	"context"
	"errors"
	"time"

	"floodgate/lua"
	"floodgate/sale"
)

// Bounds of one sweep.
const (
	sweepMembers  = 16              // members of `pending` a call: up to 16 x 256 tokens
	sweepRounds   = 50              // calls an activity and turn
	announceLate  = 3 * time.Second // a row not announced for so long is told again
	announceLimit = 500             // rows a turn
	shelfLimit    = 1000            // messages a turn
)

// sweep looks for what nobody has finished: due reservations, which hold everything that a message holds, messages on the shelf,
// and rows whose outcome was not told. It feeds the placer that the queue feeds, under the same rate.
func (w *Worker) sweep(ctx context.Context) error {
	return every(ctx, w.cfg.SweepEvery, nil, func(ctx context.Context) {
		for _, a := range *w.current.Load() {
			cell := lua.Cell{Activity: a.ID}
			for _, step := range []func(context.Context, lua.Cell) error{w.sweepDue, w.sweepShelf} {
				if err := step(ctx, cell); err != nil && ctx.Err() == nil && !errors.Is(err, errUnproven) {
					w.log.Warn("sweep", "activity", a.ID, "error", err)
				}
			}
		}
		if err := w.sweepUnannounced(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn("sweep of unannounced orders", "error", err)
		}
	})
}

// sweepDue places reservations that are due, and buries those past their hold as failed rows.
func (w *Worker) sweepDue(ctx context.Context, cell lua.Cell) error {
	for range sweepRounds {
		due, late, err := w.ledger.Due(ctx, cell, sweepMembers)
		if err != nil {
			return unproven(err)
		}
		if len(due)+len(late) == 0 {
			return nil
		}
		w.metrics.swept.Add(float64(len(due) + len(late)))
		if err := w.submitReservations(ctx, cell, due, false); err != nil {
			return err
		}
		if err := w.submitReservations(ctx, cell, late, true); err != nil {
			return err
		}
	}
	return nil
}

func (w *Worker) submitReservations(ctx context.Context, cell lua.Cell, rs []sale.Reservation, expire bool) error {
	claims := make([]lua.ClaimRequest, len(rs))
	for i := range rs {
		claims[i] = lua.ClaimOf(&rs[i])
	}
	return w.submitAll(ctx, kindOf{cell: cell, source: sale.FromSweep, expire: expire}, claims)
}

// sweepShelf places messages that were put aside while their activity's stock was not proven.
func (w *Worker) sweepShelf(ctx context.Context, cell lua.Cell) error {
	messages, err := w.store.Shelved(ctx, cell.Activity, shelfLimit)
	if err != nil || len(messages) == 0 {
		return err
	}
	known, strange, err := w.known(ctx, cell.Activity, messages)
	if err != nil {
		return err
	}
	if err := w.bury(ctx, strange); err != nil {
		return err
	}
	if err := w.submitMessages(ctx, cell, known); err != nil {
		return err
	}
	return w.unshelve(ctx, messages)
}

func (w *Worker) unshelve(ctx context.Context, messages []sale.Message) error {
	tokens := make([]sale.Token, len(messages))
	for i, m := range messages {
		tokens[i] = m.Token
	}
	return w.store.Unshelve(ctx, tokens...)
}

// sweepUnannounced tells outcomes again that a worker wrote and did not live to tell: a page a turn, and from the start behind the
// last one, since those of an activity whose stock is not proven wait and must not keep the others waiting.
func (w *Worker) sweepUnannounced(ctx context.Context) error {
	orders, err := w.store.UnannouncedAfter(ctx, w.swept, w.now()-sale.Millis(announceLate.Milliseconds()), announceLimit)
	if err != nil {
		return err
	}
	if w.swept = (sale.Order{}); len(orders) == announceLimit {
		w.swept = orders[len(orders)-1]
	}
	byActivity := map[sale.ID][]sale.Order{}
	for _, o := range orders {
		byActivity[o.Activity] = append(byActivity[o.Activity], o)
	}
	for id, orders := range byActivity {
		known, err := w.knows(ctx, id)
		if err != nil {
			return err
		}
		if !known { // its keys are gone for good: nobody can be waiting
			w.announced.mark(orders)
			continue
		}
		if err := w.settle(ctx, lua.Cell{Activity: id}, orders); err != nil {
			return err
		}
	}
	return nil
}
