package worker

import (
	"errors"
	"strings"
	"testing"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
	"floodgate/sql"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func key(id sale.ID, what string) string { return "seckill:{" + id.String() + ".0}:" + what }
func metaKey(id sale.ID) string          { return key(id, "meta") }
func stockKey(id sale.ID) string         { return key(id, "stock") }

// opened2 loads an activity without a worker.
func (w *world) opened2(a sql.Activity) {
	w.t.Helper()
	must(w.t, Preheat(w.t.Context(), w.store, w.ledger, a))
}

func (w *world) drainedQueue() bool {
	ends, err := w.queue.Ends(w.t.Context())
	if err != nil {
		return false
	}
	placed, err := w.store.PlacedPositions(w.t.Context(), "orders")
	return err == nil && behind(ends, placed) == 0
}

func behind(ends []mq.Position, placed map[string]int64) (n int64) {
	for _, e := range ends {
		n += max(0, e.Next-placed[e.Queue])
	}
	return n
}

// restart makes Redis look like another process: embedded it is empty, a real one keeps its data under a new run id.
func (w *world) restart(activities ...sql.Activity) {
	w.t.Helper()
	for _, a := range activities {
		if w.embedded {
			must(w.t, w.ledger.Drop(w.t.Context(), lua.Cell{Activity: a.ID}))
		} else {
			must(w.t, w.rdb.HSet(w.t.Context(), metaKey(a.ID), "run_id", strings.Repeat("0", 40)).Err())
		}
	}
}

func (w *world) epoch(a sql.Activity) int64 {
	w.t.Helper()
	s, err := w.ledger.Inspect(w.t.Context(), lua.Cell{Activity: a.ID})
	must(w.t, err)
	return s.Epoch
}

// Several activities, orders placed and others still in the queue: after a restart nothing is lost and each sells on.
func TestRecoverSeveralActivities(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		x, y := w.activity(10, 1), w.activity(10, 1)
		w.start(2)
		w.opened(x)
		w.opened(y)
		placed := w.reserve(x, 1)
		w.send(placed)
		w.order(placed.Token)
		w.stop()
		var queued []sale.Message
		for user := sale.ID(2); user <= 5; user++ {
			queued = append(queued, w.reserve(x, user), w.reserve(y, user))
		}
		w.send(queued...)
		epoch := w.epoch(x)
		w.restart(x, y)
		w.start(2)
		for _, m := range queued {
			if o := w.order(m.Token); o.State != sale.StatePending {
				t.Fatalf("user %s of activity %s was told accepted and is %s (%s)", m.User, m.Activity, o.State.Outcome(), o.Reason)
			}
		}
		w.opened(x)
		w.opened(y)
		if got := w.epoch(x); got <= epoch {
			t.Fatalf("epoch %d after the restart, %d before", got, epoch)
		}
		w.balanced(x)
		w.balanced(y)
		w.reserve(x, 6)
	})
}

// What was reserved and reached no queue survives a restart of a Redis that kept its data.
func TestRecoverKeepsOccupied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	a := w.activity(3, 1)
	w.opened2(a)
	m := w.reserve(a, 1)
	w.restart(a)
	if r, err := w.ledger.Reserve(t.Context(), lua.Cell{Activity: a.ID}, commodity, 9900, []lua.ReserveRequest{{Token: w.token(2, a.ID), User: 2, Quantity: 1}}); err != nil || r.Answers[0].Code != lua.Unproven {
		t.Fatalf("reserve on an unproven stock: %+v, %v", r.Answers, err)
	}
	w.start(1)
	if o := w.order(m.Token); o.State != sale.StatePending {
		t.Fatalf("order %s", o.State.Outcome())
	}
	w.opened(a)
	w.balanced(a)
}

// An epoch that was raised and never written (a recoverer died): the next claim finds itself behind, and a recovery runs.
func TestRule02EpochAheadStartsARecovery(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		w.opened2(a)
		_, err := w.store.RaiseEpoch(t.Context(), a.ID)
		must(t, err)
		m := w.reserve(a, 1)
		w.send(m)
		w.start(1)
		if o := w.order(m.Token); o.State != sale.StatePending {
			t.Fatalf("order %s", o.State.Outcome())
		}
		w.opened(a)
		w.balanced(a)
	})
}

// A real Redis that lost an activity sells nothing of it; its messages go to the shelf and hold up nobody.
func TestLostStockIsRefusedAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	x, y := w.activity(3, 1), w.activity(3, 1)
	w.start(1)
	w.opened(x)
	w.opened(y)
	lost := w.reserve(x, 1)
	w.stop()
	must(t, w.ledger.Drop(t.Context(), lua.Cell{Activity: x.ID}))
	m := w.reserve(y, 1)
	w.send(lost, m)
	w.start(1)
	w.order(m.Token)
	w.eventually("the lost activity's message is on the shelf", func() bool {
		shelved, err := w.store.Shelved(t.Context(), x.ID, 10)
		return err == nil && len(shelved) == 1 && shelved[0].Token == lost.Token
	})
	if s, err := w.ledger.Inspect(t.Context(), lua.Cell{Activity: x.ID}); err != nil || s.Opened {
		t.Fatalf("the lost stock was opened again: %+v, %v", s, err)
	}
}

// Added stock is added once, whatever a restart does in between.
func TestRule09AddedStockIsCountedOnce(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		w.opened2(a)
		_, err := w.store.AddLot(t.Context(), sql.Lot{Operation: "op-" + a.ID.String(), Activity: a.ID, Commodity: commodity, Units: 2})
		must(t, err)
		w.restart(a)
		w.start(2)
		w.opened(a)
		w.eventually("the lot is applied", func() bool {
			lots, err := w.store.LotsToApply(t.Context(), a.ID)
			return err == nil && len(lots) == 0
		})
		w.balanced(a)
		_, err = w.store.AddLot(t.Context(), sql.Lot{Operation: "op2-" + a.ID.String(), Activity: a.ID, Commodity: commodity, Units: 5})
		must(t, err)
		w.eventually("the second lot reaches Redis", func() bool {
			s, err := w.ledger.Inspect(t.Context(), lua.Cell{Activity: a.ID})
			return err == nil && s.Remaining[commodity] == 10
		})
		w.balanced(a)
	})
}

// A pause is the operator's, and a restart does not lift it.
func TestRule08RestartDoesNotLiftAPause(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		w.start(1)
		w.opened(a)
		w.eventually("paused", func() bool { // the database hears that it is live a little after Redis
			_, err := w.store.SetStatus(t.Context(), a.ID, sale.Paused)
			return err == nil
		})
		epoch := w.epoch(a)
		w.restart(a)
		w.eventually("recovered and paused", func() bool {
			s, err := w.ledger.Inspect(t.Context(), lua.Cell{Activity: a.ID})
			return err == nil && s.Proven && !s.Recovering && s.Epoch > epoch && s.Status == sale.Paused
		})
	})
}

// A lot that comes between the raised epoch and the reading of the rows is counted under the very epoch that goes live: its note in
// Redis keeps it from being added again.
func TestRule09LotUnderTheNewEpochIsCountedOnce(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		w.opened2(a)
		one := w.worker()
		p := &proof{cell: lua.Cell{Activity: a.ID}, keep: map[sale.Token]sale.Reservation{}, slots: map[slot]bool{}, sold: map[sale.ID]int64{}}
		must(t, w.ledger.Unprove(t.Context(), p.cell))
		var err error
		p.epoch, err = w.store.RaiseEpoch(t.Context(), a.ID)
		must(t, err)
		lot, err := w.store.AddLot(t.Context(), sql.Lot{Operation: "op-" + a.ID.String(), Activity: a.ID, Commodity: commodity, Units: 2})
		must(t, err)
		if lot.Epoch != p.epoch {
			t.Fatalf("lot under epoch %d, recovery under %d", lot.Epoch, p.epoch)
		}
		must(t, one.readStock(t.Context(), p))
		must(t, one.begin(t.Context(), p))
		must(t, one.writeStock(t.Context(), p))
		must(t, one.restock(t.Context(), p.cell)) // another worker's turn, before this recovery has marked the lot
		must(t, one.live(t.Context(), p))
		w.balanced(a)
		one.Listener.Close()
	})
}

// A recovery that finds another epoch in the database, or another Redis, while it drains gives up at once.
func TestRule03DrainUnderAnotherEpochGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	a := w.activity(3, 1)
	w.opened2(a)
	one := w.worker()
	defer one.Listener.Close()
	p := &proof{cell: lua.Cell{Activity: a.ID}, epoch: w.epoch(a)}
	must(t, one.stands(t.Context(), []*proof{p}))
	w.restart(a)
	if err := one.stands(t.Context(), []*proof{p}); !errors.Is(err, lua.ErrUnproven) {
		t.Fatalf("another Redis: %v", err)
	}
	_, err := w.store.RaiseEpoch(t.Context(), a.ID)
	must(t, err)
	if err := one.stands(t.Context(), []*proof{p}); !errors.Is(err, sql.ErrFenced) {
		t.Fatalf("another epoch: %v", err)
	}
}

// Redis is restarted once more while a recovery drains, with messages in the queue that cannot be placed meanwhile.
func TestRecoverOverASecondRestart(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(10, 1)
		w.opened2(a)
		var queued []sale.Message
		for user := sale.ID(1); user <= 5; user++ {
			queued = append(queued, w.reserve(a, user))
		}
		w.restart(a)
		w.start(2)
		w.eventually("a recovery drains", func() bool {
			s, err := w.ledger.Inspect(t.Context(), lua.Cell{Activity: a.ID})
			return err == nil && s.Recovering
		})
		w.restart(a)
		w.send(queued...)
		for _, m := range queued {
			if o := w.order(m.Token); o.State != sale.StatePending {
				t.Fatalf("user %s is %s (%s)", m.User, o.State.Outcome(), o.Reason)
			}
		}
		w.opened(a)
		w.balanced(a)
	})
}

// An activity whose books are broken stays closed, and keeps no other from being proven.
func TestBrokenBooksAreTheirOwn(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		x, y := w.activity(3, 1), w.activity(3, 1)
		w.opened2(x)
		w.opened2(y)
		_, err := w.store.DB().ExecContext(t.Context(), "UPDATE items SET sold = 1 WHERE activity_id = "+x.ID.String())
		must(t, err)
		w.restart(x, y)
		w.start(1)
		w.opened(y)
		w.reserve(y, 1)
		if s, err := w.ledger.Inspect(t.Context(), lua.Cell{Activity: x.ID}); err != nil || s.Opened && s.Proven && !s.Recovering {
			t.Fatalf("broken books are sold on: %+v, %v", s, err)
		}
	})
}
