package mq_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"floodgate/mq"
	"floodgate/sale"
)

// driver is one queue of a test's own, empty, seen from all sides.
type driver struct {
	producer mq.Producer
	worker   func() mq.Consumer // another consumer of the same group
	backlog  mq.Backlog
	letters  mq.DeadLetters
	raw      func(t *testing.T, body string) // puts bytes into the queue as they are
	queues   int
}

// conformance is what every driver does alike.
func conformance(t *testing.T, open func(t *testing.T) *driver) {
	for name, check := range map[string]func(*testing.T, *driver){
		"the widest message is small":                   widest,
		"a full batch goes in one call":                 fullBatch,
		"batches out of bounds are refused":             outOfBounds,
		"order is kept within a queue":                  order,
		"an error offers the same batch again":          againAfterError,
		"a panic offers the same batch again":           againAfterPanic,
		"unreadable messages become dead letters":       deadLetters,
		"a letter put aside can be replayed":            replay,
		"Run returns after the handler":                 stopWhileHandling,
		"a handler that never ends is cut":              cutAfterGrace,
		"what was acknowledged does not come again":     acknowledged,
		"positions and ends meet when drained":          drained,
		"two workers share the work, one takes it over": twoWorkers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

func widest(t *testing.T, d *driver) {
	m := message(1<<63 - 1)
	m.User, m.Activity, m.Commodity = 1<<63-1, 1<<63-1, 1<<63-1
	m.Token = key.Sign(sale.TokenClaims{User: m.User, Activity: m.Activity, Nonce: 1<<64 - 1, Expires: (1<<32 - 1) * 1000})
	m.Price, m.Quantity, m.At, m.LedgerID = sale.MaxPrice, sale.MaxQuantity, 9_999_999_999_999, "9999999999999-18446744073709551615"
	if n := len(m.Append(nil)); n >= sale.MaxMessage {
		t.Errorf("the widest message has %d bytes, want less than %d", n, sale.MaxMessage)
	}
	w := start(t, d.worker())
	send(t, d, m)
	if got := w.messages(1); got[0] != m {
		t.Errorf("got %+v\nwant %+v", got[0], m)
	}
}

func fullBatch(t *testing.T, d *driver) {
	w := start(t, d.worker())
	sent := messages(1, mq.MaxSend)
	send(t, d, sent...)
	same(t, w.messages(len(sent)), sent)
}

func outOfBounds(t *testing.T, d *driver) {
	for _, n := range []int{0, mq.MaxSend + 1} {
		if err := d.producer.Send(t.Context(), messages(1, n)); err == nil || errors.Is(err, mq.ErrUnanswered) {
			t.Errorf("Send of %d messages: %v, want a refusal", n, err)
		}
	}
}

func order(t *testing.T, d *driver) {
	w := start(t, d.worker())
	var sent []sale.Message
	for i := range 40 {
		batch := messages(1+i*5, 5)
		send(t, d, batch...)
		sent = append(sent, batch...)
	}
	same(t, w.messages(len(sent)), sent)
	last, next := map[string]sale.ID{}, map[string]int64{}
	for _, b := range w.seen() {
		q := b.Position.Queue
		for _, m := range b.Messages {
			if m.User <= last[q] {
				t.Errorf("queue %s gave %d after %d", q, m.User, last[q])
			}
			last[q] = m.User
		}
		if b.Position.Next <= next[q] {
			t.Errorf("queue %s: position %d after %d", q, b.Position.Next, next[q])
		}
		next[q] = b.Position.Next
	}
	if len(last) != d.queues {
		t.Errorf("messages lay in %d queues, want %d", len(last), d.queues)
	}
}

func againAfterError(t *testing.T, d *driver) {
	again(t, d, func() error { return errors.New("the database is away") })
}

func againAfterPanic(t *testing.T, d *driver) {
	again(t, d, func() error { panic("a bug in placing") })
}

// again fails the first two offers of each batch: the third must be the same, in place, and nothing of its queue may come between.
func again(t *testing.T, d *driver, fail func() error) {
	var r record
	sent := messages(1, 10)
	send(t, d, sent...)
	offers := map[string]int{}
	w := startWith(t, d.worker(), func(b mq.Batch) error {
		r.Lock()
		defer r.Unlock()
		r.batches = append(r.batches, b)
		if offers[b.Position.Queue]++; offers[b.Position.Queue] <= 2 {
			return fail()
		}
		return nil
	})
	w.until("three offers of the batch", func() bool { return r.count() >= 3*len(sent) })
	batches := r.all()
	for i := range 2 {
		if b := batches[i]; b.Position != batches[2].Position || !slices.Equal(b.Messages, batches[2].Messages) {
			t.Errorf("offer %d was %v, the accepted one %v", i+1, b.Position, batches[2].Position)
		}
	}
	parked(t, d)
}

func stopWhileHandling(t *testing.T, d *driver) {
	send(t, d, message(1))
	entered, finish := make(chan struct{}), make(chan struct{})
	handled := false
	w := startWith(t, d.worker(), func(mq.Batch) error {
		close(entered)
		<-finish
		handled = true
		return nil
	})
	<-entered
	w.stop()
	select {
	case <-w.done:
		t.Error("Run returned while its handler was running")
	default:
	}
	close(finish)
	w.wait()
	if !handled {
		t.Error("Run returned before its handler")
	}
	again := start(t, d.worker())
	send(t, d, message(2))
	same(t, again.messages(1), messages(2, 1)) // the first one was acknowledged while stopping
}

func cutAfterGrace(t *testing.T, d *driver) {
	send(t, d, message(1))
	entered := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- d.worker().Run(ctx, func(ctx context.Context, _ mq.Batch) error {
			close(entered)
			<-ctx.Done() // the stock is not proven, say
			return ctx.Err()
		})
	}()
	<-entered
	stop()
	within(t, "Run returns after the grace time", done)
}

func acknowledged(t *testing.T, d *driver) {
	w := start(t, d.worker())
	send(t, d, messages(1, 20)...)
	w.messages(20)
	w.positions(d)
	w.stop()
	w.wait()
	again := start(t, d.worker())
	send(t, d, message(100))
	same(t, again.messages(1), messages(100, 1))
}

func drained(t *testing.T, d *driver) {
	ends, err := d.backlog.Ends(t.Context())
	if err != nil || len(ends) != d.queues {
		t.Fatalf("ends of an empty queue: %v, %v; want %d queues", ends, err, d.queues)
	}
	for _, e := range ends {
		if e.Next != 0 {
			t.Errorf("the end of an empty queue is %v, want 0: no position is ever recorded there", e)
		}
	}
	w := start(t, d.worker())
	for i := range 10 {
		send(t, d, messages(1+i*20, 20)...)
	}
	w.messages(200)
	w.positions(d)
	parked(t, d)
}

func twoWorkers(t *testing.T, d *driver) {
	a, b := start(t, d.worker()), start(t, d.worker())
	var sent []sale.Message
	for i := range 30 {
		batch := messages(1+i*10, 10)
		send(t, d, batch...)
		sent = append(sent, batch...)
	}
	a.until("both have it all", func() bool { return covers(sent, a, b) })
	if d.queues > 1 {
		a.until("each message goes to one of them, and each has some", func() bool { return shared(t, d, a, b) })
	}
	a.stop()
	a.wait()
	more := messages(1000, 50)
	for _, m := range more {
		send(t, d, m)
	}
	b.until("the other has taken over", func() bool { return covers(more, b) })
	parked(t, d)
}

// shared sends some messages and says whether the workers parted them among each other.
func shared(t *testing.T, d *driver, a, b *worker) bool {
	t.Helper()
	hadA, hadB := a.count(), b.count()
	some := messages(5000+hadA+hadB, 2*d.queues)
	for _, m := range some {
		send(t, d, m)
	}
	a.until("they arrive", func() bool { return covers(some, a, b) })
	gotA, gotB := a.count()-hadA, b.count()-hadB
	return gotA > 0 && gotB > 0 && gotA+gotB == len(some)
}
