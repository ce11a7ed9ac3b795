package worker

import (
	"context"
	"errors"
	"time"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
	"floodgate/sql"
)

// shelfAfter is how long messages of an activity whose stock is not proven hold up their queue before they are put on
// the shelf: longer than a recovery needs until claims work again, short enough for the other activities behind them.
const (
	shelfAfter = 2 * time.Second
	retryPause = 100 * time.Millisecond
)

// consume places one batch of the queue and records its position. It is the queue's handler: nil acknowledges, an error
// has the same batch offered again. One activity that cannot be placed never blocks another's messages.
func (w *Worker) consume(ctx context.Context, b mq.Batch) error {
	cells, messages := byCell(b.Messages)
	results := make(chan error, len(cells))
	for _, cell := range cells {
		go func() { results <- w.consumeCell(ctx, cell, messages[cell]) }() // waited for below
	}
	var faults []error
	for range cells {
		faults = append(faults, <-results)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return w.positions.record(ctx, b.Position)
}

func byCell(messages []sale.Message) (order []lua.Cell, byCell map[lua.Cell][]sale.Message) {
	byCell = map[lua.Cell][]sale.Message{}
	for _, m := range messages {
		c := lua.Cell{Activity: m.Activity}
		if byCell[c] == nil {
			order = append(order, c)
		}
		byCell[c] = append(byCell[c], m)
	}
	return order, byCell
}

// consumeCell places messages of one activity; where its stock stays unproven they are put aside durably, and for good where nobody
// knows the activity or the item: no recovery would ever make them placeable, and those beside them would wait for ever.
func (w *Worker) consumeCell(ctx context.Context, cell lua.Cell, messages []sale.Message) error {
	messages, strange, err := w.known(ctx, cell.Activity, messages)
	if err != nil {
		return err
	}
	if err := w.bury(ctx, strange); err != nil || len(messages) == 0 {
		return err
	}
	deadline := time.Now().Add(shelfAfter)
	for {
		err := w.submitMessages(ctx, cell, messages)
		if !errors.Is(err, errUnproven) {
			return err
		}
		w.wake()
		if time.Now().After(deadline) {
			w.metrics.shelved.Add(float64(len(messages)))
			return w.store.Shelve(ctx, messages)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryPause):
		}
	}
}

// submitMessages has them placed, a full call at a time.
func (w *Worker) submitMessages(ctx context.Context, cell lua.Cell, messages []sale.Message) error {
	claims := make([]lua.ClaimRequest, len(messages))
	for i, m := range messages {
		claims[i] = lua.ClaimRequest{Token: m.Token, User: m.User, Commodity: m.Commodity, Quantity: m.Quantity, Price: m.Price, At: m.At}
	}
	return w.submitAll(ctx, kindOf{cell: cell, source: sale.FromQueue}, claims)
}

// known parts messages of one activity into those of its items and those of nothing that is sold.
func (w *Worker) known(ctx context.Context, id sale.ID, messages []sale.Message) (known, strange []sale.Message, err error) {
	if knows, err := w.knows(ctx, id); err != nil || !knows {
		return nil, messages, err
	}
	a, err := w.activity(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range messages {
		if a.Item(m.Commodity) != nil {
			known = append(known, m)
		} else {
			strange = append(strange, m)
		}
	}
	return known, strange, nil
}

// knows says whether the activity exists and its keys are still kept.
func (w *Worker) knows(ctx context.Context, id sale.ID) (bool, error) {
	a, err := w.activity(ctx, id)
	if errors.Is(err, sql.ErrNotFound) {
		return false, nil
	}
	return err == nil && w.now() < a.Expires(), err
}

// bury settles messages of what is unknown or cleaned up by their rows alone; one without a row is a dead letter.
func (w *Worker) bury(ctx context.Context, messages []sale.Message) error {
	for _, m := range messages {
		orders, err := w.store.OrdersByToken(ctx, m.Token)
		if err != nil {
			return err
		}
		if len(orders) > 0 {
			continue
		}
		if err := w.Letters.Add(ctx, m, sale.ReasonUnknown); err != nil {
			return err
		}
	}
	return nil
}
