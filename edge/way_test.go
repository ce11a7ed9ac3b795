package edge

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"floodgate/lua"
	"floodgate/sale"
)

// scripted is a ledger that does as the test says.
type scripted struct {
	Ledger
	reserve func(batch []lua.ReserveRequest) (lua.ReserveReply, error)

	mu            sync.Mutex
	batches       [][]lua.ReserveRequest
	flying, peak  int
	noted         []string
	notedPerCalls []int
}

func (l *scripted) Reserve(_ context.Context, _ lua.Cell, _ sale.ID, _ sale.Cents, batch []lua.ReserveRequest) (lua.ReserveReply, error) {
	l.mu.Lock()
	l.batches = append(l.batches, batch)
	l.flying++
	l.peak = max(l.peak, l.flying)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.flying--
		l.mu.Unlock()
	}()
	return l.reserve(batch)
}

func (l *scripted) Enqueued(_ context.Context, _ lua.Cell, pending ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted = append(l.noted, pending...)
	l.notedPerCalls = append(l.notedPerCalls, len(pending))
	return nil
}

func (l *scripted) sizes() (sizes []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.batches {
		sizes = append(sizes, len(b))
	}
	return sizes
}

// allReserved gives everybody a unit.
func allReserved(batch []lua.ReserveRequest) (lua.ReserveReply, error) {
	return all(lua.Reserved)(batch)
}

func all(code lua.Code) func([]lua.ReserveRequest) (lua.ReserveReply, error) {
	return func(batch []lua.ReserveRequest) (lua.ReserveReply, error) {
		r := lua.ReserveReply{Remaining: 1000, Epoch: 1, Version: 1, At: 1, LedgerID: "1-0", Pending: string(batch[0].Token)}
		for range batch {
			r.Answers = append(r.Answers, lua.ReserveAnswer{Code: code})
		}
		return r, nil
	}
}

// way is an edge without HTTP and Redis: the way from reserve to accepted.
type way struct {
	edge   *Edge
	till   *till
	ledger *scripted
	queue  *backlog
	wg     sync.WaitGroup
	mu     sync.Mutex
	told   map[sale.Code]int
}

// inBubble runs a test of the way with its own time.
func inBubble(t *testing.T, change func(*Config), test func(t *testing.T, w *way)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		if change != nil {
			change(&cfg)
		}
		w := &way{ledger: &scripted{reserve: allReserved}, queue: &backlog{}, told: map[sale.Code]int{}}
		var err error
		w.edge, err = New(cfg, Deps{Ledger: w.ledger, Producer: w.queue, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Registerer: prometheus.NewRegistry()})
		must(t, err)
		w.till = w.edge.newTill(1, 5, 7)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.edge.notes.run(ctx); close(done) }()
		test(t, w)
		w.wg.Wait()
		cancel()
		<-done
		w.edge.close()
	})
}

// buyers sends n calls on their way at the same moment.
func (w *way) buyers(n int) {
	for i := range n {
		w.wg.Go(func() { w.count(w.call(sale.Token("token-" + sale.ID(newID()+sale.ID(i)).String()))) })
	}
}

func (w *way) call(token sale.Token) sale.Code {
	c := &call{wake: make(chan func(), 1)} // not pooled: a channel belongs to its bubble
	c.token, c.user, c.activity, c.commodity, c.quantity = token, 1, 5, 7, 1
	c.item = &item{Item: sale.Item{Commodity: 7, Price: 100}, till: w.till}
	if !w.till.line.add(c) {
		return sale.Busy
	}
	return c.await()
}

func (w *way) count(code sale.Code) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told[code]++
}
