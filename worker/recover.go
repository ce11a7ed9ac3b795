package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// recoveryLease names the lease under which one worker recovers; it is renewed at each step.
const (
	recoveryLease = "recover"
	recoveryTTL   = 10 * time.Second
	recoverPage   = 256
)

// errLease says that another worker recovers now.
var errLease = errors.New("another worker holds the recovery's lease")

// recover proves the stock of activities after Redis was restarted, replaced or started empty (embedded), against the database and the
// queue, in five steps: raise the epoch, read the rows, write Redis, drain the queue, live. The first three are done for every
// activity before the fourth of any, since draining one waits for messages of the others. It may die anywhere and be started again.
func (w *Worker) recover(ctx context.Context, activities []sql.Activity) error {
	if err := w.hold(ctx); errors.Is(err, errLease) {
		return nil
	} else if err != nil {
		return err
	}
	defer w.store.DropLease(context.WithoutCancel(ctx), recoveryLease, w.Owner) //nolint:errcheck // it expires by itself
	began := time.Now()
	var proofs []*proof
	for _, a := range activities {
		if err := w.hold(ctx); err != nil {
			return err
		}
		p, err := w.rebuild(ctx, a.ID)
		if err != nil {
			return fmt.Errorf("activity %s: %w", a.ID, err)
		}
		proofs = append(proofs, p)
	}
	if err := w.drain(ctx, proofs); err != nil {
		return err
	}
	for _, p := range proofs {
		if err := w.live(ctx, p); err != nil {
			return fmt.Errorf("activity %s: %w", p.cell.Activity, err)
		}
		w.log.Info("stock proven", "activity", p.cell.Activity, "epoch", p.epoch, "orders", p.orders, "kept", p.kept,
			"seconds", time.Since(began).Seconds())
	}
	w.metrics.recoveries.Inc()
	w.wake()
	return nil
}

// hold takes or renews the lease.
func (w *Worker) hold(ctx context.Context) error {
	held, err := w.store.TakeLease(ctx, recoveryLease, w.Owner, recoveryTTL)
	if err == nil && !held {
		return errLease
	}
	return err
}

// proof is one activity's recovery on its way.
type proof struct {
	cell     lua.Cell
	epoch    int64
	activity sql.Activity
	lots     []string                        // counted in the totals
	keep     map[sale.Token]sale.Reservation // occupied ones without a row
	slots    map[slot]bool                   // slots that rows hold, of users in keep
	sold     map[sale.ID]int64               // units of live rows
	orders   int
	kept     int
}

type slot struct {
	user, commodity sale.ID
	n               int
}

// rebuild does steps 1 to 3 for one activity: raise the epoch, read the rows, write Redis.
func (w *Worker) rebuild(ctx context.Context, id sale.ID) (*proof, error) {
	p := &proof{cell: lua.Cell{Activity: id}, keep: map[sale.Token]sale.Reservation{}, slots: map[slot]bool{}, sold: map[sale.ID]int64{}}
	before, err := w.ledger.Inspect(ctx, p.cell)
	if err != nil {
		return nil, err
	}
	if err := w.ledger.Unprove(ctx, p.cell); err != nil { // from here no script moves stock
		return nil, err
	}
	if p.epoch, err = w.store.RaiseEpoch(ctx, id); err != nil { // from here no transaction of an older epoch commits
		return nil, err
	}
	if err := w.readStock(ctx, p); err != nil {
		return nil, err
	}
	if err := w.begin(ctx, p); err != nil {
		return nil, err
	}
	// Occupied reservations are kept, unless this Redis is older than the last recovery, which has dealt with those.
	if err := w.readReservations(ctx, p, before.Opened && before.Epoch >= p.activity.LiveEpoch); err != nil {
		return nil, err
	}
	if err := w.writeRows(ctx, p); err != nil {
		return nil, err
	}
	return p, w.writeStock(ctx, p)
}

// readStock reads items and lots as of one moment: a lot that came between the two reads is seen by the third.
func (w *Worker) readStock(ctx context.Context, p *proof) error {
	for range 10 {
		before, err := w.lots(ctx, p.cell.Activity)
		if err != nil {
			return err
		}
		if p.activity, err = w.store.Activity(ctx, p.cell.Activity); err != nil {
			return err
		}
		if p.lots, err = w.lots(ctx, p.cell.Activity); err != nil {
			return err
		}
		if slices.Equal(before, p.lots) {
			return nil
		}
	}
	return errors.New("stock is being added faster than it can be read")
}

func (w *Worker) lots(ctx context.Context, id sale.ID) ([]string, error) {
	lots, err := w.store.LotsToApply(ctx, id)
	names := make([]string, len(lots))
	for i, l := range lots {
		names[i] = l.Operation
	}
	slices.Sort(names)
	return names, err
}

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
		return refused(w.ledger.RebuildPage(ctx, p.cell, p.epoch, write, drop))
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
		if x.ReservedAt != y.ReservedAt {
			return int(x.ReservedAt - y.ReservedAt)
		}
		return compareTokens(x.Token, y.Token)
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
	}
	held, err := w.store.HoldsEpoch(ctx, p.cell.Activity, p.epoch)
	if err != nil {
		return err
	}
	if !held {
		return sql.ErrFenced
	}
	return refused(w.ledger.RebuildEnd(ctx, p.activity.Activity, p.epoch, remaining))
}

func compareTokens(x, y sale.Token) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// takes says whether a row holds one of the reservation's slots already.
func (p *proof) takes(r sale.Reservation) bool {
	return slices.ContainsFunc(r.Slots, func(n int) bool { return p.slots[slot{r.User, r.Commodity, n}] })
}

// live is step 5: the database records the epoch as live, then the script checks the identity once more. Where Redis was restarted
// again in between, the next turn starts over.
func (w *Worker) live(ctx context.Context, p *proof) error {
	if err := w.hold(ctx); err != nil {
		return err
	}
	if err := w.store.RecordLive(ctx, p.cell.Activity, p.epoch, p.lots); err != nil {
		return err
	}
	return refused(w.ledger.RebuildLive(ctx, p.cell, p.epoch))
}
