package edge

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
)

func TestALoneCallGoesAtOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *way) {
		start := time.Now()
		want(t, "told", w.call("one"), sale.Accepted)
		want(t, "time", time.Since(start), 0)
		want(t, "sends", w.queue.sends, 1)
		synctest.Wait()
		want(t, "noted", len(w.ledger.noted), 1)
	})
}

func TestWhoeverWaitsIsTakenAlong(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *way) {
		gate := make(chan struct{})
		w.ledger.reserve = func(b []lua.ReserveRequest) (lua.ReserveReply, error) {
			<-gate
			return allReserved(b)
		}
		w.buyers(1)
		synctest.Wait()
		w.buyers(300)
		synctest.Wait()
		want(t, "calls in flight", len(w.ledger.sizes()), 1)
		close(gate)
		w.wg.Wait()
		got := w.ledger.sizes()
		if len(got) != 3 || got[0] != 1 || got[1] != lua.MaxReserve || got[2] != 300-lua.MaxReserve {
			t.Errorf("batches %v, want 1, 256, 44", got)
		}
		want(t, "most at once", w.ledger.peak, 1)
		want(t, "accepted", w.told[sale.Accepted], 301)
	})
}

func TestAtMostTwoSendsFly(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *way) {
		var mu sync.Mutex
		flying, peak, sizes := 0, 0, []int{}
		gate := make(chan struct{})
		w.queue.failWith(func(b []sale.Message) error {
			mu.Lock()
			flying++
			peak = max(peak, flying)
			sizes = append(sizes, len(b))
			mu.Unlock()
			<-gate
			mu.Lock()
			flying--
			mu.Unlock()
			return nil
		})
		for range 2 {
			w.buyers(1)
			synctest.Wait()
		}
		w.buyers(400)
		synctest.Wait()
		close(gate)
		w.wg.Wait()
		want(t, "most at once", peak, sendsInFlight)
		want(t, "accepted", w.told[sale.Accepted], 402)
		for _, n := range sizes {
			if n > mq.MaxSend {
				t.Errorf("a send of %d", n)
			}
		}
		if len(sizes) > 4 {
			t.Errorf("sends %v: the waiting were not gathered", sizes)
		}
	})
}

func TestSingleGathersNothing(t *testing.T) {
	inBubble(t, func(c *Config) { c.Single = true }, func(t *testing.T, w *way) {
		gate := make(chan struct{})
		w.ledger.reserve = func(b []lua.ReserveRequest) (lua.ReserveReply, error) { <-gate; return allReserved(b) }
		w.buyers(50)
		synctest.Wait()
		want(t, "calls at once", len(w.ledger.sizes()), 50)
		close(gate)
		w.wg.Wait()
		want(t, "sends", w.queue.sends, 50)
	})
}

func TestALineHasRoomForSoMany(t *testing.T) {
	inBubble(t, func(c *Config) { c.Waiting = 2 }, func(t *testing.T, w *way) {
		gate := make(chan struct{})
		w.ledger.reserve = func(b []lua.ReserveRequest) (lua.ReserveReply, error) { <-gate; return allReserved(b) }
		w.buyers(1)
		synctest.Wait()
		w.buyers(5)
		synctest.Wait()
		want(t, "busy", w.told[sale.Busy], 3)
		close(gate)
	})
}

func TestAnUnansweredReserveIsAskedAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *way) {
		tries := 0
		w.ledger.reserve = func(b []lua.ReserveRequest) (lua.ReserveReply, error) {
			if tries++; tries < 3 {
				return lua.ReserveReply{}, context.DeadlineExceeded
			}
			return all(lua.Again)(b)
		}
		want(t, "told", w.call("same"), sale.Accepted)
		for _, b := range w.ledger.batches {
			want(t, "token", b[0].Token, sale.Token("same"))
		}
		want(t, "tries", tries, 3)
		want(t, "sends", w.queue.sends, 1)
		synctest.Wait()
		want(t, "noted, since the first try took it", len(w.ledger.noted), 1)

		w.ledger.reserve = func([]lua.ReserveRequest) (lua.ReserveReply, error) {
			tries++
			return lua.ReserveReply{}, io.ErrUnexpectedEOF
		}
		want(t, "never answered", w.call("other"), sale.Busy)
		want(t, "tries in all", tries, 3+reserveTries)
		w.ledger.reserve = func([]lua.ReserveRequest) (lua.ReserveReply, error) {
			tries++
			return lua.ReserveReply{}, lua.ErrUnproven
		}
		want(t, "unproven", w.call("third"), sale.Busy)
		want(t, "asked once", tries, 4+reserveTries)
	})
}

// RULES 7: a reply that grew older than a recovery waits is not trusted any more.
func TestAnOldReplyIsConfirmed(t *testing.T) {
	slow := func([]sale.Message) error { <-time.After(lua.Grace + time.Second); return nil }
	for _, c := range []struct {
		name   string
		second lua.Code
		send   func([]sale.Message) error
		want   sale.Code
		calls  int
	}{
		{"still there", lua.Again, slow, sale.Accepted, 2},
		{"taken anew", lua.Reserved, slow, sale.Accepted, 2},
		{"gone and sold out", lua.SoldOut, slow, sale.Busy, 2},
		{"recovering", lua.Unproven, slow, sale.Busy, 2},
		{"the queue gave up late", lua.Again, func([]sale.Message) error { <-time.After(3 * time.Second); return mq.ErrUnanswered }, sale.Accepted, 2},
		{"in time", lua.SoldOut, func([]sale.Message) error { <-time.After(lua.Grace - time.Second); return nil }, sale.Accepted, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *way) {
				w.queue.failWith(c.send)
				w.ledger.reserve = func(b []lua.ReserveRequest) (lua.ReserveReply, error) {
					if len(w.ledger.sizes()) == 1 {
						return allReserved(b)
					}
					return all(c.second)(b)
				}
				want(t, "told", w.call("t"), c.want)
				want(t, "reserve calls", len(w.ledger.sizes()), c.calls)
			})
		})
	}
}

func TestAnOldReplyIsConfirmedOnlySoOften(t *testing.T) {
	inBubble(t, func(c *Config) { c.ReserveTimeout = 2 * time.Second }, func(t *testing.T, w *way) {
		w.ledger.reserve = func(b []lua.ReserveRequest) (lua.ReserveReply, error) {
			<-time.After(lua.Grace + time.Millisecond) // the process stood still while the reply was on its way
			return all(lua.Again)(b)
		}
		want(t, "told", w.call("t"), sale.Busy)
		want(t, "reserve calls", len(w.ledger.sizes()), 1+confirmTries)
	})
}

func TestWhatTheQueueSays(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *way) {
		w.queue.failWith(func([]sale.Message) error { return mq.ErrUnanswered })
		want(t, "no answer", w.call("a"), sale.Accepted)
		w.queue.failWith(func([]sale.Message) error { return errors.New("the file is full") })
		want(t, "a refusal", w.call("b"), sale.Busy)
		synctest.Wait()
		want(t, "noted", len(w.ledger.noted), 0)
		w.queue.failWith(nil)
		w.ledger.reserve = all(lua.Again)
		want(t, "the same token again", w.call("b"), sale.Accepted)
		want(t, "is sent again", w.queue.sends, 1)
		w.edge.acked.cache.Wait()
		want(t, "and again", w.call("b"), sale.Accepted)
		want(t, "is not, since the queue has it", w.queue.sends, 1)
	})
}

func TestABatchIsNotedWhenAllOfItIsAcknowledged(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *way) {
		gate := make(chan struct{})
		w.ledger.reserve = func(b []lua.ReserveRequest) (lua.ReserveReply, error) { <-gate; return allReserved(b) }
		bad := errors.New("no")
		w.queue.failWith(func(b []sale.Message) error {
			for _, m := range b {
				if m.Token == "bad" {
					return bad
				}
			}
			return nil
		})
		w.wg.Go(func() { w.count(w.call("first")) })
		synctest.Wait()
		w.wg.Go(func() { w.count(w.call("good")) })
		w.wg.Go(func() { w.count(w.call("bad")) })
		synctest.Wait()
		close(gate)
		w.wg.Wait()
		synctest.Wait()
		if len(w.ledger.noted) != 1 || w.ledger.noted[0] != "first" {
			t.Errorf("noted %v, want the first batch alone", w.ledger.noted)
		}
	})
}

func TestAnUnprovenReplySellsNothingOut(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *way) {
		for _, code := range []lua.Code{lua.Unproven, lua.Unopened} {
			w.ledger.reserve = func(b []lua.ReserveRequest) (lua.ReserveReply, error) {
				r, err := all(code)(b)
				r.Remaining, r.Version = 0, 9
				return r, err
			}
			want(t, "told", w.call("t"), sale.Busy)
			w.edge.soldOut.cache.Wait()
			want(t, "sold out", w.edge.soldOut.has(w.till), false)
		}
	})
}

func TestAnUnknownReserveCodeIsABug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	refusalOf(99)
}
