package mq_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"floodgate/mq"
	"floodgate/sale"
)

// patience bounds every wait of these tests; nothing but a failure takes as long.
const patience = 20 * time.Second

var key = sale.NewTokenKey([]byte("a secret of the tests"))

// message is the order of user n.
func message(n sale.ID) sale.Message {
	return sale.Message{
		Token: key.Sign(sale.TokenClaims{User: n, Activity: 77, Nonce: uint64(n), Expires: 1_800_000_000_000}),
		User:  n, Activity: 77, Commodity: 5, Price: 9900, Quantity: 1, At: 1_764_000_000_000, LedgerID: "1764000000000-0",
	}
}

func messages(first, count int) []sale.Message {
	out := make([]sale.Message, count)
	for i := range out {
		out[i] = message(sale.ID(first + i))
	}
	return out
}

func send(t *testing.T, d *driver, batch ...sale.Message) {
	t.Helper()
	if err := d.producer.Send(t.Context(), batch); err != nil {
		t.Fatalf("Send of %d messages: %v", len(batch), err)
	}
}

// record keeps the batches that a handler saw.
type record struct {
	sync.Mutex
	batches []mq.Batch
}

func (r *record) all() []mq.Batch {
	r.Lock()
	defer r.Unlock()
	return slices.Clone(r.batches)
}

func (r *record) count() (n int) {
	for _, b := range r.all() {
		n += len(b.Messages)
	}
	return n
}

// worker is a running consumer and what it has accepted.
type worker struct {
	t    testing.TB
	stop context.CancelFunc
	done chan error
	record
}

// start runs a consumer that accepts everything.
func start(t testing.TB, c mq.Consumer) *worker {
	return startWith(t, c, func(mq.Batch) error { return nil })
}

// startWith runs a consumer whose handler is f; what f accepts is recorded. It is stopped and waited for when the test ends.
func startWith(t testing.TB, c mq.Consumer, f func(mq.Batch) error) *worker {
	ctx, stop := context.WithCancel(context.Background())
	w := &worker{t: t, stop: stop, done: make(chan error, 1)}
	go func() {
		w.done <- c.Run(ctx, func(_ context.Context, b mq.Batch) error {
			if err := f(b); err != nil {
				return err
			}
			w.Lock()
			defer w.Unlock()
			w.batches = append(w.batches, b)
			return nil
		})
		close(w.done)
	}()
	t.Cleanup(func() { stop(); w.wait() })
	return w
}

func (w *worker) seen() []mq.Batch { return w.all() }

func (w *worker) wait() { w.t.Helper(); within(w.t, "Run returns", w.done) }

func within(t testing.TB, what string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(patience):
		t.Fatalf("not in %v: %s", patience, what)
	}
}

// until polls a condition.
func (w *worker) until(what string, ok func() bool) { w.t.Helper(); eventually(w.t, what, ok) }

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not in %v: %s", patience, what)
		case <-tick.C:
		}
	}
}

// messages waits until n different ones are there and gives what came.
func (w *worker) messages(n int) []sale.Message {
	w.t.Helper()
	w.until("all messages arrive", func() bool { return len(byUser(w)) >= n })
	return slices.SortedFunc(maps.Values(byUser(w)), func(a, b sale.Message) int { return int(a.User - b.User) })
}

func byUser(workers ...*worker) map[sale.ID]sale.Message {
	got := map[sale.ID]sale.Message{}
	for _, w := range workers {
		for _, b := range w.all() {
			for _, m := range b.Messages {
				got[m.User] = m
			}
		}
	}
	return got
}

// covers says whether the workers have had all of these.
func covers(want []sale.Message, workers ...*worker) bool {
	got := byUser(workers...)
	return !slices.ContainsFunc(want, func(m sale.Message) bool { return got[m.User] != m })
}

// positions waits until the handler's positions have reached the ends that the queue tells.
func (w *worker) positions(d *driver) {
	w.t.Helper()
	ends, err := d.backlog.Ends(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.until("positions reach the ends", func() bool {
		at := map[string]int64{}
		for _, b := range w.all() {
			at[b.Position.Queue] = b.Position.Next
		}
		return !slices.ContainsFunc(ends, func(e mq.Position) bool { return at[e.Queue] < e.Next })
	})
}

func same(t *testing.T, got, want []sale.Message) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %d messages, want %d, or they differ", len(got), len(want))
	}
}

func parked(t *testing.T, d *driver) {
	t.Helper()
	if n, err := d.backlog.Parked(t.Context()); n != 0 || err != nil {
		t.Errorf("parked: %d, %v; want 0", n, err)
	}
}
