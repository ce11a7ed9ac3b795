package worker

import (
	"context"
	"fmt"
	"time"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// maxCurrent bounds the activities that one Redis holds at a time.
const maxCurrent = 10_000

// A recovery that fails, since Redis went away once more, is tried again at the next turn. One that keeps failing waits for a
// person (broken books), and is not worth a rebuild twice a second.
const (
	failuresInHaste = 5
	failureRest     = 5 * time.Second
)

// keep compares Redis with the database at each turn: the database says what is wanted (status, window, price, added stock), and
// Redis follows. A stock that is not proven on this Redis process, or whose epoch is behind the database's, starts a recovery.
func (w *Worker) keep(ctx context.Context) error {
	return every(ctx, w.cfg.KeepEvery, w.kick, func(ctx context.Context) {
		tctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		unproven, err := w.look(tctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.unready(err.Error())
			w.metrics.keepFailed.Inc()
		} else if len(unproven) == 0 {
			w.healthy.Store(nil)
		}
		if len(unproven) == 0 {
			return
		}
		w.unready(fmt.Sprintf("the stock of %d activities is being proven", len(unproven)))
		select {
		case w.unproven <- unproven:
		default: // a recovery runs, which may wait for the queue as long as that is away: everything else is kept meanwhile
		}
	})
}

// prove recovers what the keeper finds, one recovery after the other, until ctx ends.
func (w *Worker) prove(ctx context.Context) error {
	failed, tried := 0, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case unproven := <-w.unproven:
			if failed >= failuresInHaste && time.Since(tried) < failureRest {
				continue
			}
			tried = time.Now()
			err := w.recover(ctx, unproven)
			if failed++; err == nil {
				failed = 0
			} else if ctx.Err() == nil {
				w.log.Warn("recovery did not end and is tried again", "error", err)
			}
		}
	}
}

// look reads every current activity from both sides, makes Redis follow, and returns those whose stock must be proven. One activity's
// fault does not keep it from the others; the first is returned.
func (w *Worker) look(ctx context.Context) ([]sql.Activity, error) {
	activities, err := w.store.Current(ctx, w.now(), maxCurrent)
	if err != nil {
		return nil, err
	}
	w.current.Store(&activities)
	var unproven []sql.Activity
	doubted := map[sale.ID]bool{}
	w.lostNow = 0
	defer func() { w.metrics.lost.Set(float64(w.lostNow)) }()
	for _, a := range activities {
		due, fault := w.follow(ctx, a)
		if fault != nil && err == nil {
			err = fmt.Errorf("activity %s: %w", a.ID, fault)
		}
		if due {
			unproven = append(unproven, a)
			doubted[a.ID] = true
		}
	}
	w.doubted.Store(&doubted)
	return unproven, err
}

// follow makes Redis say what the database says of one activity, and tells whether its stock must be proven first.
func (w *Worker) follow(ctx context.Context, a sql.Activity) (recoveryDue bool, err error) {
	if a.Status == sale.Created {
		return false, w.preheat(ctx, a)
	}
	if a.Status == sale.Ended && a.LiveEpoch == 0 {
		return false, nil // it was ended before it was ever opened
	}
	cell := lua.Cell{Activity: a.ID}
	s, err := w.ledger.Inspect(ctx, cell)
	if err != nil {
		return false, err
	}
	if s.Now >= a.Expires() {
		return false, nil // over by Redis's clock, which runs before ours: its keys are gone as they should be
	}
	// A recoverer that died in the midst of its writing leaves no stock: that is no loss, the reservations are there.
	if lost := !s.Opened && !s.Rebuilding || s.Epoch < a.LiveEpoch; lost && !w.Embedded {
		w.lost(a, s)
		return false, nil
	}
	if needsProof(s, a) {
		return true, nil
	}
	if s.Status != a.Status || !sameCatalog(s.Catalog, a.Activity) {
		// Read again: an operator may have paused it since all activities were read, and has told Redis by now.
		if a, err = w.store.Activity(ctx, a.ID); err != nil {
			return false, err
		}
		if err := w.ledger.Describe(ctx, a.Activity); err != nil {
			return false, err
		}
	}
	return false, w.restock(ctx, cell)
}

// needsProof says that the stock in Redis does not stand for what the database says.
func needsProof(s lua.State, a sql.Activity) bool {
	return !s.Opened || !s.Proven || s.Recovering || s.Epoch != a.Epoch
}

// lost says, once for each state seen, that this Redis holds less than had gone live. Its stock is not sold: rebuilding a live
// stack from the database alone needs a person until that is built, and `busy` is the honest answer meanwhile.
func (w *Worker) lost(a sql.Activity, s lua.State) {
	w.lostNow++
	if w.lostSaid[a.ID] != s.Epoch+1 {
		w.lostSaid[a.ID] = s.Epoch + 1
		w.log.Error("Redis has lost this activity's stock: nothing is sold, buyers are told busy",
			"activity", a.ID, "live_epoch", a.LiveEpoch, "redis_epoch", s.Epoch, "opened", s.Opened)
	}
}

// preheat loads a created activity into Redis when its start is near. Loading is done once: the same epoch again changes nothing.
func (w *Worker) preheat(ctx context.Context, a sql.Activity) error {
	if a.StartsAt.Time().Sub(w.now().Time()) > w.cfg.PreheatBefore {
		return nil
	}
	return Preheat(ctx, w.store, w.ledger, a)
}

// Preheat loads an activity's stock into Redis and makes it live. It is safe to repeat and to be done by several at once.
func Preheat(ctx context.Context, store *sql.Store, ledger *lua.Ledger, a sql.Activity) error {
	a, remaining, err := store.Opening(ctx, a.ID)
	if err != nil {
		return err
	}
	live := a.Activity
	live.Status = sale.Live
	code, err := ledger.Open(ctx, live, a.Epoch, remaining)
	switch {
	case err != nil:
		return err
	case code == lua.Stale:
		return fmt.Errorf("cannot preheat activity %s: %w", a.ID, lua.ErrStale)
	case code == lua.Unproven:
		return fmt.Errorf("cannot preheat activity %s: %w", a.ID, lua.ErrUnproven)
	}
	if err := store.RecordLive(ctx, a.ID, a.Epoch, nil); err != nil {
		return err
	}
	return store.MarkOpened(ctx, a.ID)
}

// restock adds lots that Redis has not had yet; the script refuses one of another epoch, which a rebuild has counted.
func (w *Worker) restock(ctx context.Context, cell lua.Cell) error {
	lots, err := w.store.LotsToApply(ctx, cell.Activity)
	if err != nil {
		return err
	}
	for _, l := range lots {
		code, err := w.ledger.Restock(ctx, cell, l.Commodity, l.Units, l.Epoch, l.Operation)
		if err != nil {
			return unproven(err)
		}
		if code == lua.Reserved || code == lua.Again {
			if err := w.store.MarkLotsApplied(ctx, l.Operation); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameCatalog compares what buyers see; the total of an item moves with its lots.
func sameCatalog(x, y sale.Activity) bool {
	if x.Title != y.Title || x.StartsAt != y.StartsAt || x.EndsAt != y.EndsAt || x.PerUserLimit != y.PerUserLimit ||
		x.PayWindow != y.PayWindow || x.Captcha != y.Captcha || x.Status != y.Status || len(x.Items) != len(y.Items) {
		return false
	}
	for i := range x.Items {
		if x.Items[i] != y.Items[i] {
			return false
		}
	}
	return true
}
