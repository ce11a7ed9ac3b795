package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// begin claims the rebuild for this epoch; a recoverer that was stopped and has lost its lease is refused here and at each page.
func (w *Worker) begin(ctx context.Context, p *proof) error {
	held, err := w.store.HoldsEpoch(ctx, p.cell.Activity, p.epoch)
	if err != nil {
		return err
	}
	if !held {
		return sql.ErrFenced
	}
	return refused(w.ledger.RebuildBegin(ctx, p.cell, p.epoch))
}

// refused turns a rebuild script's answer into an error.
func refused(code lua.Code, err error) error {
	switch {
	case err != nil:
		return err
	case code == lua.Stale:
		return lua.ErrStale
	case code == lua.Unproven:
		return lua.ErrUnproven
	}
	return nil
}

// readReservations walks what Redis still holds: a token whose row holds nothing any more is written as released, an occupied one
// without a row is kept for the placing that is still to come, anything else is dropped.
func (w *Worker) readReservations(ctx context.Context, p *proof, keep bool) error {
	return w.ledger.Scan(ctx, p.cell, func(page []sale.Reservation) error {
		tokens := make([]sale.Token, len(page))
		for i, r := range page {
			tokens[i] = r.Token
		}
		orders, err := w.store.OrdersByToken(ctx, tokens...)
		if err != nil {
			return err
		}
		rows := make(map[sale.Token]*sale.Order, len(orders))
		for i := range orders {
			rows[orders[i].Token] = &orders[i]
		}
		var write []sale.Reservation
		var drop []sale.Token
		for _, r := range page {
			switch row := rows[r.Token]; {
			case row != nil && !row.State.Live():
				write = append(write, reservationOf(row))
			case row != nil: // written with the rows
			case keep && r.State == sale.Occupied:
				p.keep[r.Token] = r
			default:
				drop = append(drop, r.Token)
			}
		}
		if err := refused(w.ledger.RebuildPage(ctx, p.cell, p.epoch, write, drop)); err != nil {
			return err
		}
		return w.hold(ctx)
	})
}

// reservationOf is the reservation that stands for a row.
func reservationOf(o *sale.Order) sale.Reservation {
	e := o.Outcome()
	r := sale.Reservation{Token: o.Token, State: sale.Committed, User: o.User, Commodity: o.Commodity, Quantity: o.Quantity, Price: o.Price,
		Slots: o.Slots, ReservedAt: o.CreatedAt, OrderNo: e.OrderNo, Outcome: e.Outcome, Reason: e.Reason, PayBy: e.PayBy, SettledAt: o.UpdatedAt}
	if !o.State.Live() {
		r.State, r.Slots = sale.Released, nil
	}
	return r
}

// writeRows writes a committed reservation for every live row, in pages.
func (w *Worker) writeRows(ctx context.Context, p *proof) error {
	users := map[sale.ID]bool{}
	for _, r := range p.keep {
		users[r.User] = true
	}
	for after := sale.ID(0); ; {
		orders, err := w.store.OrdersOfActivity(ctx, p.cell.Activity, after, recoverPage, true)
		if err != nil {
			return err
		}
		if len(orders) == 0 {
			return nil
		}
		write := make([]sale.Reservation, len(orders))
		for i := range orders {
			o := &orders[i]
			write[i] = reservationOf(o)
			p.sold[o.Commodity] += int64(o.Quantity)
			if users[o.User] {
				for _, n := range o.Slots {
					p.slots[slot{o.User, o.Commodity, n}] = true
				}
			}
		}
		if err := refused(w.ledger.RebuildPage(ctx, p.cell, p.epoch, write, nil)); err != nil {
			return err
		}
		p.orders += len(orders)
		after = orders[len(orders)-1].No
		if err := w.hold(ctx); err != nil {
			return err
		}
	}
}

// writeStock writes the kept reservations, oldest first as far as there are units and slots for them, and ends step 3: stock,
// identity and the new epoch; claims work from here, reserve does not.
func (w *Worker) writeStock(ctx context.Context, p *proof) error {
	remaining := map[sale.ID]int64{}
	for _, s := range p.activity.States {
		if s.Sold != p.sold[s.Commodity] {
			return fmt.Errorf("the books are broken: item %s says %d sold, its live orders say %d; nothing is sold until a person has looked", s.Commodity, s.Sold, p.sold[s.Commodity])
		}
		remaining[s.Commodity] = s.Total - s.Sold - s.FallbackLeft
	}
	kept := slices.SortedFunc(maps.Values(p.keep), func(x, y sale.Reservation) int {
		return cmp.Or(cmp.Compare(x.ReservedAt, y.ReservedAt), cmp.Compare(x.Token, y.Token))
	})
	var write []sale.Reservation
	var drop []sale.Token
	for _, r := range kept {
		if remaining[r.Commodity] < int64(r.Quantity) || p.takes(r) {
			drop = append(drop, r.Token)
			continue
		}
		remaining[r.Commodity] -= int64(r.Quantity)
		write = append(write, r)
	}
	p.kept = len(write)
	for len(write)+len(drop) > 0 {
		nw, nd := min(len(write), recoverPage), min(len(drop), recoverPage)
		if err := refused(w.ledger.RebuildPage(ctx, p.cell, p.epoch, write[:nw], drop[:nd])); err != nil {
			return err
		}
		write, drop = write[nw:], drop[nd:]
		if err := w.hold(ctx); err != nil {
			return err
		}
	}
	held, err := w.store.HoldsEpoch(ctx, p.cell.Activity, p.epoch)
	if err != nil {
		return err
	}
	if !held {
		return sql.ErrFenced
	}
	if err := refused(w.ledger.RebuildLots(ctx, p.cell, p.epoch, p.lots)); err != nil {
		return err
	}
	return refused(w.ledger.RebuildEnd(ctx, p.activity.Activity, p.epoch, remaining))
}

// takes says whether a row holds one of the reservation's slots already.
func (p *proof) takes(r sale.Reservation) bool {
	return slices.ContainsFunc(r.Slots, func(n int) bool { return p.slots[slot{r.User, r.Commodity, n}] })
}
