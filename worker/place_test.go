package worker

import (
	"sync"
	"testing"
	"time"

	"floodgate/lua"
	"floodgate/sale"
)

// An accepted purchase becomes one order, its reservation is committed and carries the order's number.
func TestPlaceFromQueue(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(5, 1)
		w.start(2)
		w.opened(a)
		m := w.reserve(a, 9007199254740993)
		w.send(m, m)
		o := w.order(m.Token)
		if o.State != sale.StatePending || o.User != 9007199254740993 || o.Price != 9900 || o.Source != sale.FromQueue || o.PayBy <= o.CreatedAt {
			t.Fatalf("order %+v", o)
		}
		r, err := w.ledger.Reservations(t.Context(), lua.Cell{Activity: a.ID}, m.Token)
		must(t, err)
		if got := r[m.Token]; got.State != sale.Committed || got.OrderNo != o.No || got.Outcome != sale.PendingPayment || got.PayBy != o.PayBy {
			t.Fatalf("reservation %+v of order %d", got, o.No)
		}
		w.balanced(a)
	})
}

// Placing itself commits and announces: the sweep is for what died on the way, and a buyer does not wait for it.
func TestPlacingDoesNotWaitForTheSweep(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		w.sweep = time.Hour
		a := w.activity(5, 1)
		w.start(1)
		w.opened(a)
		m := w.reserve(a, 1)
		w.send(m)
		w.order(m.Token)
		w.balanced(a)
	})
}

// The reservation is the outbox: what the queue never got is placed by the sweep, straight from Redis.
func TestCase11SweepPlacesWhatTheQueueNeverGot(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(5, 1)
		w.start(1)
		w.opened(a)
		m := w.reserve(a, 1)
		if o := w.order(m.Token); o.State != sale.StatePending || o.Source != sale.FromSweep {
			t.Fatalf("order %+v", o)
		}
		w.balanced(a)
	})
}

// The database has 1 unit left, Redis (wrongly) 2: one order, one failed, and the failed one's unit and slot come back.
func TestCase08DatabaseDecidesAboutTheLastUnit(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(1, 1)
		w.start(1)
		w.opened(a)
		must(t, w.rdb.HIncrBy(t.Context(), stockKey(a.ID), commodity.String(), 1).Err())
		first, second := w.reserve(a, 1), w.reserve(a, 2)
		w.send(first, second)
		x, y := w.order(first.Token), w.order(second.Token)
		if x.State != sale.StatePending || y.State != sale.StateFailed || y.Reason != sale.ReasonSoldOut {
			t.Fatalf("orders %s and %s (%s)", x.State.Outcome(), y.State.Outcome(), y.Reason)
		}
		s, err := w.ledger.Inspect(t.Context(), lua.Cell{Activity: a.ID})
		must(t, err)
		if s.Remaining[commodity] != 1 {
			t.Fatalf("remaining %d: the failed one's unit did not come back", s.Remaining[commodity])
		}
		w.reserve(a, 2) // the slot came back too
	})
}

// One order fails in the middle of a batch; nobody else of the batch is affected.
func TestCase12OneFailureOfABatchIsItsOwn(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(10, 1)
		w.opened2(a)
		bad := message(a, 99, w.token(99, a.ID)) // a message whose user holds the slot already under another token
		first := w.reserve(a, 99)
		var batch []sale.Message
		for user := sale.ID(1); user <= 5; user++ {
			batch = append(batch, w.reserve(a, user))
		}
		w.send(append([]sale.Message{first, bad}, batch...)...)
		w.start(1)
		if o := w.order(bad.Token); o.State != sale.StateFailed || o.Reason != sale.ReasonDuplicate {
			t.Fatalf("bad: %s %s", o.State.Outcome(), o.Reason)
		}
		for _, m := range append(batch, first) {
			if o := w.order(m.Token); o.State != sale.StatePending {
				t.Fatalf("user %s: %s %s", m.User, o.State.Outcome(), o.Reason)
			}
		}
		w.balanced(a)
	})
}

// A message of an activity that exists nowhere is a dead letter and holds up nobody.
func TestUnknownActivityIsADeadLetter(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(5, 1)
		w.start(1)
		w.opened(a)
		ghost := a
		ghost.ID = 424242
		lost := message(ghost, 1, w.token(1, ghost.ID))
		m := w.reserve(a, 2)
		w.send(lost, m)
		w.order(m.Token)
		w.eventually("a dead letter", func() bool {
			letters, err := w.queue.List(t.Context(), 10)
			return err == nil && len(letters) == 1 && letters[0].Reason == sale.ReasonUnknown
		})
	})
}

// A reservation past its hold becomes a failed row, and its unit comes back.
func TestHoldPassedIsATombstone(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(5, 1)
		w.opened2(a)
		must(t, w.rdb.HSet(t.Context(), metaKey(a.ID), "hold_ms", "1").Err())
		m := w.reserve(a, 1)
		w.start(1)
		if o := w.order(m.Token); o.State != sale.StateFailed || o.Reason != sale.ReasonExpired {
			t.Fatalf("order %s %s", o.State.Outcome(), o.Reason)
		}
		w.send(m) // the late message resurrects nothing
		w.eventually("the late message is consumed", func() bool { return w.drainedQueue() })
		if o := w.order(m.Token); o.State != sale.StateFailed {
			t.Fatalf("order %s", o.State.Outcome())
		}
		w.balanced(a)
	})
}

// A row that was written and not told is told again; a watcher of the channel hears it.
func TestUnannouncedIsToldAgain(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(5, 1)
		w.start(1)
		w.opened(a)
		m := w.reserve(a, 1)
		w.send(m)
		o := w.order(m.Token)
		sub := w.rdb.Subscribe(t.Context(), lua.OutcomeChannel)
		defer sub.Close()
		_, err := sub.Receive(t.Context())
		must(t, err)
		_, err = w.store.DB().ExecContext(t.Context(), "UPDATE orders SET announced = 0, updated_at = updated_at - 60000 WHERE order_no = "+o.No.String())
		must(t, err)
		heard := make(chan struct{})
		go func() {
			for msg := range sub.Channel() {
				if contains(msg.Payload, string(m.Token)) {
					close(heard)
					return
				}
			}
		}()
		w.eventually("told again", func() bool {
			select {
			case <-heard:
				return true
			default:
				return false
			}
		})
		w.order(m.Token) // announced once more
	})
}

func TestMintIsUniqueAndFindsTheShard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	m := newMint(w.store, "x", w.worker().log)
	if _, err := m.next(1); err == nil {
		t.Fatal("minted without a node id")
	}
	must(t, m.lease(t.Context()))
	var mu sync.Mutex
	seen := map[sale.ID]bool{}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				user := sale.ID(1 + g*500 + i)
				no, err := m.next(user)
				if err != nil || no <= 0 || int64(no)&(shards-1) != shardOf(user) {
					t.Errorf("user %d: %d, %v", user, no, err)
				}
				mu.Lock()
				if seen[no] {
					t.Errorf("%d twice", no)
				}
				seen[no] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
}
