package worker

import (
	"context"
	"errors"
	"fmt"
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
	if activities = w.stillUnproven(ctx, activities); len(activities) == 0 {
		return nil
	}
	began := time.Now()
	var proofs []*proof
	var faults []error // one activity's broken books are not the others'
	for _, a := range activities {
		if err := w.hold(ctx); err != nil {
			return err
		}
		p, err := w.rebuild(ctx, a.ID)
		if err != nil {
			faults = append(faults, fmt.Errorf("activity %s: %w", a.ID, err))
			continue
		}
		proofs = append(proofs, p)
	}
	if len(proofs) == 0 {
		return errors.Join(faults...)
	}
	if err := w.drain(ctx, proofs); err != nil {
		return errors.Join(append(faults, err)...)
	}
	for _, p := range proofs {
		if err := w.live(ctx, p); err != nil {
			faults = append(faults, fmt.Errorf("activity %s: %w", p.cell.Activity, err))
			continue
		}
		w.log.Info("stock proven", "activity", p.cell.Activity, "epoch", p.epoch, "orders", p.orders, "kept", p.kept,
			"seconds", time.Since(began).Seconds())
	}
	w.metrics.recoveries.Inc()
	w.wake()
	return errors.Join(faults...)
}

// stillUnproven leaves out what another recovery has proven since these were seen: a sale must not stop again for nothing.
func (w *Worker) stillUnproven(ctx context.Context, seen []sql.Activity) (still []sql.Activity) {
	for _, a := range seen {
		now, err := w.store.Activity(ctx, a.ID)
		if err == nil {
			var s lua.State
			if s, err = w.ledger.Inspect(ctx, lua.Cell{Activity: a.ID}); err == nil && !needsProof(s, now) {
				continue
			}
		}
		still = append(still, a) // also what could not be read: the rebuild says why
	}
	return still
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
	if err := w.readReservations(ctx, p, (before.Opened || before.Rebuilding) && before.Epoch >= p.activity.LiveEpoch); err != nil {
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
