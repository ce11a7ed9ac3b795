package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// write puts the batch's rows into the database, one transaction an item, and moves them to b.orders. It returns the claims
// whose transaction was refused by the fence: they are to be claimed again.
func (w *Worker) write(ctx context.Context, activity sale.ID, epoch int64, b *batch) (fenced []lua.ClaimRequest, err error) {
	for _, commodity := range slices.Sorted(maps.Keys(b.rows)) {
		orders, err := w.writeItem(ctx, activity, commodity, epoch, b.rows[commodity])
		if errors.Is(err, sql.ErrFenced) {
			for _, o := range b.rows[commodity] {
				fenced = append(fenced, b.claims[o.Token])
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		b.orders = append(b.orders, orders...)
	}
	return fenced, nil
}

// writeItem writes rows of one item until each has its row. What cannot be sold becomes a failed row: a slot that the user's
// live order holds, or a unit that is not there, whatever Redis said.
func (w *Worker) writeItem(ctx context.Context, activity, commodity sale.ID, epoch int64, rows []sale.Order) ([]sale.Order, error) {
	var orders []sale.Order
	for range maxRounds {
		if err := w.limit.WaitN(ctx, len(rows)); err != nil {
			return nil, fmt.Errorf("cannot place %d orders: %w", len(rows), err)
		}
		p, err := w.store.Place(ctx, activity, commodity, epoch, rows)
		if err != nil {
			return nil, err
		}
		w.metrics.placed(p.Inserted)
		orders = append(append(orders, p.Inserted...), p.Existing...)
		rows = rows[:0:0]
		for _, o := range p.NoSlot {
			rows = append(rows, fail(o, sale.ReasonDuplicate))
		}
		for _, o := range p.NoStock {
			rows = append(rows, fail(o, sale.ReasonSoldOut))
		}
		for _, o := range p.SameNo {
			if o.No, err = w.mint.next(o.User); err != nil {
				return nil, err
			}
			rows = append(rows, o)
		}
		if len(rows) == 0 {
			return orders, nil
		}
	}
	return nil, fmt.Errorf("cannot place %d orders of activity %s item %s: the batch does not settle", len(rows), activity, commodity)
}

// fail turns a pending row that cannot be into a failed one, which takes nothing.
func fail(o sale.Order, reason string) sale.Order {
	o.State, o.Reason, o.Slots = sale.StateFailed, reason, nil
	return o
}
