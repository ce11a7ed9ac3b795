package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"floodgate/deploy/stacktest"
	"floodgate/identity"
	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
	"floodgate/sql"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"),
		goleak.IgnoreAnyFunction("database/sql.(*DB).connectionCleaner"),
		// The RocketMQ client's cache of parsed names has one cleaner for the process, started by importing it.
		goleak.IgnoreAnyFunction("github.com/patrickmn/go-cache.(*janitor).Run"))
}

// world is one sale with real parts: a Redis (inside or real), a database (SQLite or MariaDB), a queue, and workers.
type world struct {
	t        *testing.T
	rdb      *redis.Client
	ledger   *lua.Ledger
	store    *sql.Store
	queue    *mq.Table
	key      *sale.TokenKey
	internal *identity.Internal
	embedded bool
	sweep    time.Duration // between two sweeps of the workers
	stop     func()        // stops the workers that run
}

// worlds runs a test on both pairs of parts.
func worlds(t *testing.T, f func(w *world)) {
	t.Run("embedded", func(t *testing.T) { t.Parallel(); f(newWorld(t, true)) })
	t.Run("real", func(t *testing.T) { t.Parallel(); f(newWorld(t, false)) })
}

func newWorld(t *testing.T, embedded bool) *world {
	w := &world{t: t, embedded: embedded, sweep: 50 * time.Millisecond, key: sale.NewTokenKey([]byte("a test's secret of 32 bytes, long")),
		internal: identity.NewInternal([]byte("a test's secret of 32 bytes, long")), stop: func() {}}
	file := openStore(t, sql.Config{Driver: sql.SQLite, DSN: filepath.Join(t.TempDir(), "queue.db")})
	w.queue, w.store = mq.NewTable(file.DB()), file
	addr := ""
	if embedded {
		addr = miniredis.RunT(t).Addr()
	} else {
		addr = stacktest.Redis(t)
		w.store = openStore(t, sql.Config{Driver: sql.MySQL, DSN: stacktest.MySQL(t)})
	}
	w.rdb = redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { w.rdb.Close() })
	w.ledger = lua.New(w.rdb, lua.Options{Embedded: embedded})
	t.Cleanup(func() { w.stop() })
	return w
}

func openStore(t *testing.T, cfg sql.Config) *sql.Store {
	t.Helper()
	s, err := sql.Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	_, err = s.Migrate(t.Context(), "up")
	must(t, err)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs n workers and makes w.stop end them.
func (w *world) start(n int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range n {
		worker := w.worker()
		all.Go(func() {
			if err := worker.Run(ctx); err != nil {
				w.t.Errorf("worker: %v", err)
			}
		})
	}
	w.stop = sync.OnceFunc(func() { cancel(); all.Wait() })
}

func (w *world) worker() *Worker {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(w.t, err)
	worker, err := New(Config{PlaceRate: 20000, PlaceTimeout: 8 * time.Second, Placers: 2, SweepEvery: w.sweep,
		KeepEvery: 50 * time.Millisecond, PreheatBefore: 24 * time.Hour}, Deps{
		Listener: l, Ledger: w.ledger, Store: w.store, Consumer: w.queue, Backlog: w.queue, Letters: w.queue, Internal: w.internal,
		Topic: "orders", Owner: "worker/" + sale.ID(rand.Int64()).String(), Embedded: w.embedded,
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
	})
	must(w.t, err)
	return worker
}

// activity creates one that is open now, with one item of so many units; its id is random, so that tests share a Redis.
func (w *world) activity(total int64, limit int) sql.Activity {
	w.t.Helper()
	now := sale.At(time.Now())
	id, err := w.store.CreateActivity(w.t.Context(), sale.Activity{
		ID: sale.ID(rand.Int64N(1<<62) + 1), Title: "test", StartsAt: now - 1000, EndsAt: now + 3_600_000, PerUserLimit: limit, PayWindow: time.Minute,
		Items: []sale.Item{{Commodity: commodity, Title: "thing", Price: 9900, Total: total}},
	})
	must(w.t, err)
	w.t.Cleanup(func() { _ = w.ledger.Drop(context.Background(), lua.Cell{Activity: id}) })
	a, err := w.store.Activity(w.t.Context(), id)
	must(w.t, err)
	return a
}

const commodity sale.ID = 7

// opened waits until a worker has loaded the activity.
func (w *world) opened(a sql.Activity) {
	w.t.Helper()
	w.eventually("the activity is live", func() bool {
		s, err := w.ledger.Inspect(w.t.Context(), lua.Cell{Activity: a.ID})
		return err == nil && s.Opened && s.Proven && !s.Recovering && s.Status == sale.Live
	})
}

// eventually polls until the condition holds, at most 15 s.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(15 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("not within 15 s: %s", what)
		}
	}
}

func (w *world) token(user, activity sale.ID) sale.Token {
	return w.key.Sign(sale.TokenClaims{User: user, Activity: activity, Nonce: rand.Uint64(), Expires: sale.At(time.Now().Add(time.Minute))})
}

// reserve takes one unit and returns the message that an edge would send.
func (w *world) reserve(a sql.Activity, user sale.ID) sale.Message {
	w.t.Helper()
	token := w.token(user, a.ID)
	r, err := w.ledger.Reserve(w.t.Context(), lua.Cell{Activity: a.ID}, commodity, 9900, []lua.ReserveRequest{{Token: token, User: user, Quantity: 1}})
	must(w.t, err)
	if r.Answers[0].Code != lua.Reserved {
		w.t.Fatalf("reserve: code %d", r.Answers[0].Code)
	}
	return message(a, user, token)
}

func message(a sql.Activity, user sale.ID, token sale.Token) sale.Message {
	return sale.Message{Token: token, User: user, Activity: a.ID, Commodity: commodity, Price: 9900, Quantity: 1, At: sale.At(time.Now()), LedgerID: "1-1"}
}

func (w *world) send(messages ...sale.Message) {
	w.t.Helper()
	must(w.t, w.queue.Send(w.t.Context(), messages))
}

// order waits for the token's row to be announced.
func (w *world) order(token sale.Token) (o sale.Order) {
	w.t.Helper()
	w.eventually("an announced order of the token", func() bool {
		orders, err := w.store.OrdersByToken(w.t.Context(), token)
		if err == nil && len(orders) == 1 && orders[0].Announced {
			o = orders[0]
		}
		return o.No != 0
	})
	return o
}

// balanced checks promise 2 at rest: remaining + occupied + sold + fallback == total, and the counters agree.
func (w *world) balanced(a sql.Activity) {
	w.t.Helper()
	cell := lua.Cell{Activity: a.ID}
	w.eventually("nothing is in flight", func() bool { return w.occupied(cell) == 0 })
	s, err := w.ledger.Inspect(w.t.Context(), cell)
	must(w.t, err)
	db, err := w.store.Activity(w.t.Context(), a.ID)
	must(w.t, err)
	i := db.States[0]
	if s.Remaining[commodity]+i.Sold+i.FallbackLeft != i.Total || s.Remaining[commodity] < 0 || i.Sold > i.Total {
		w.t.Fatalf("the books: remaining %d, sold %d, fallback %d, total %d", s.Remaining[commodity], i.Sold, i.FallbackLeft, i.Total)
	}
}

func (w *world) occupied(cell lua.Cell) (n int) {
	w.t.Helper()
	must(w.t, w.ledger.Scan(w.t.Context(), cell, func(page []sale.Reservation) error {
		for _, r := range page {
			if r.State == sale.Occupied {
				n++
			}
		}
		return nil
	}))
	return n
}
