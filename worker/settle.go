package worker

import (
	"context"
	"errors"

	"floodgate/lua"
	"floodgate/sale"
)

// settle tells Redis what the rows say: live orders are committed, all others released, and each outcome is published by the
// same script. Rows whose outcome is told are marked announced; the sweep tells the others again. On a Redis that is not proven it
// does nothing: the rows are there, and the rebuild reads them.
func (w *Worker) settle(ctx context.Context, cell lua.Cell, orders []sale.Order) error {
	var live, dead []sale.Order
	for _, o := range orders {
		if o.State.Live() {
			live = append(live, o)
		} else {
			dead = append(dead, o)
		}
	}
	// Releases first: a unit that comes back is offered before the buyer of it is told that it failed.
	told, err := w.tell(ctx, cell, dead, w.ledger.Release)
	if err != nil {
		return err
	}
	committed, err := w.tell(ctx, cell, live, w.ledger.Commit)
	if err != nil {
		return err
	}
	w.announced.mark(append(told, committed...))
	return nil
}

// tell sends settlements in calls of at most lua.MaxBatch and returns the orders whose outcome is now in Redis and published.
func (w *Worker) tell(ctx context.Context, cell lua.Cell, orders []sale.Order,
	verb func(context.Context, lua.Cell, []lua.Settlement) ([]lua.Code, error)) ([]sale.Order, error) {
	var told []sale.Order
	for len(orders) > 0 {
		n := min(len(orders), lua.MaxBatch)
		batch := make([]lua.Settlement, n)
		for i, o := range orders[:n] {
			batch[i] = lua.Settlement{Outcome: o.Outcome(), Commodity: o.Commodity, Quantity: o.Quantity}
		}
		codes, err := verb(ctx, cell, batch)
		switch err := unproven(err); {
		case errors.Is(err, errUnproven):
			return told, nil
		case err != nil:
			return told, err
		}
		for i, code := range codes {
			// A live order that Redis does not know is left for the rebuild, which is due then; one that holds nothing is told.
			if code == lua.Reserved || code == lua.Again || code == lua.Unknown && !orders[i].State.Live() {
				told = append(told, orders[i])
			}
		}
		orders = orders[n:]
	}
	return told, nil
}
