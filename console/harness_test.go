package console

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"floodgate/deploy/stacktest"
	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
	fsql "floodgate/sql"
)

// The RocketMQ client's cache of parsed names has one cleaner for the process, started by importing it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/patrickmn/go-cache.(*janitor).Run"))
}

// world is a running console over an own Redis (or own ids in the shared one) and an own database.
type world struct {
	*Console
	t     *testing.T
	ctx   context.Context
	rdb   *redis.Client
	store *fsql.Store
	url   string
	key   *sale.TokenKey
}

const operator = "test-operator-token-of-32-characters"

// worlds runs a test on both pairs of parts, in parallel.
func worlds(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, newWorld(t, miniredis.RunT(t).Addr(), "", lua.Options{Embedded: true}))
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		test(t, newWorld(t, stacktest.Redis(t), stacktest.MySQL(t), lua.Options{}))
	})
}

func database(t *testing.T, dsn string) *fsql.Store {
	t.Helper()
	cfg := fsql.Config{Driver: fsql.SQLite, DSN: filepath.Join(t.TempDir(), "test.db")}
	if dsn != "" {
		cfg = fsql.Config{Driver: fsql.MySQL, DSN: dsn}
	}
	s, err := fsql.Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	_, err = s.Migrate(t.Context(), "up")
	must(t, err)
	return s
}

func newWorld(t *testing.T, redisAddr, dsn string, opt lua.Options) *world {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	w := &world{t: t, ctx: context.Background(), rdb: rdb, store: database(t, dsn), key: sale.NewTokenKey([]byte("test"))}
	queue := mq.NewTable(database(t, "").DB()) // the audit only reads it
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.url = "http://" + l.Addr().String()
	w.Console, err = New(Config{ApplyWait: 100 * time.Millisecond}, Deps{
		Listener: l, Store: w.store, Ledger: lua.New(rdb, opt), Backlog: queue, Letters: queue, Topic: "orders", Token: operator,
		Log: slog.New(slog.DiscardHandler), Gatherer: prometheus.NewRegistry(), Signer: signer{}, Version: "v1.2.3",
	})
	must(t, err)
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		must(t, <-done)
	})
	return w
}

type signer struct{}

func (signer) Sign(user sale.ID, ttl time.Duration) (string, error) {
	return fmt.Sprintf("jwt-of-%s-for-%s", user, ttl), nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call sends a request as the operator and gives status and body.
func (w *world) call(method, path, body string, header ...string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.ctx, method, w.url+path, strings.NewReader(body))
	must(w.t, err)
	r.Header.Set("Authorization", "Bearer "+operator)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	must(w.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return resp.StatusCode, string(text)
}

const thing sale.ID = 9007199254740993 // 2^53 + 1

// create makes an activity of ten things, two for each user.
func (w *world) create(starts, ends time.Duration) sale.ID {
	w.t.Helper()
	now := sale.At(time.Now())
	id, err := w.store.CreateActivity(w.ctx, sale.Activity{ID: sale.ID(1<<61 + rand.Int64N(1<<61)), Title: "test", StartsAt: now + sale.Millis(starts.Milliseconds()),
		EndsAt: now + sale.Millis(ends.Milliseconds()), PerUserLimit: 2, PayWindow: time.Minute, Items: []sale.Item{{Commodity: thing, Title: "thing", Price: 9900, Total: 10}}})
	must(w.t, err)
	w.t.Cleanup(func() { _ = w.deps.Ledger.Drop(w.ctx, cellOf(id)) }) // one Redis is stopped by its test
	return id
}

func (w *world) state(id sale.ID) lua.State {
	w.t.Helper()
	s, err := w.deps.Ledger.Inspect(w.ctx, cellOf(id))
	must(w.t, err)
	return s
}

// reserve takes units for a user and gives the token.
func (w *world) reserve(id, user sale.ID, quantity int) sale.Token {
	w.t.Helper()
	token := w.key.Sign(sale.TokenClaims{User: user, Activity: id, Nonce: rand.Uint64(), Expires: sale.At(time.Now().Add(time.Hour))})
	r, err := w.deps.Ledger.Reserve(w.ctx, cellOf(id), thing, 9900, []lua.ReserveRequest{{Token: token, User: user, Quantity: quantity}})
	must(w.t, err)
	if r.Answers[0].Code != lua.Reserved {
		w.t.Fatalf("user %s got code %d", user, r.Answers[0].Code)
	}
	return token
}

// place writes the row of a reservation, live or failed.
func (w *world) place(id sale.ID, token sale.Token, state sale.OrderState) sale.Order {
	w.t.Helper()
	known, err := w.deps.Ledger.Reservations(w.ctx, cellOf(id), token)
	must(w.t, err)
	r := known[token]
	o := sale.Order{No: sale.ID(1<<60 + 2*rand.Int64N(1<<60)), Token: token, User: r.User, Activity: id, Commodity: r.Commodity, Title: "thing",
		Quantity: r.Quantity, Price: r.Price, State: state, Slots: r.Slots, PayBy: sale.At(time.Now().Add(time.Minute))}
	if state == sale.StateFailed {
		o.Slots, o.Reason = nil, sale.ReasonExpired
	}
	placed, err := w.store.Place(w.ctx, id, r.Commodity, 1, []sale.Order{o})
	must(w.t, err)
	if len(placed.Inserted) != 1 {
		w.t.Fatalf("not placed: %+v", placed)
	}
	return placed.Inserted[0]
}

func (w *world) settle(o sale.Order) {
	w.t.Helper()
	s := []lua.Settlement{{Outcome: o.Outcome(), Commodity: o.Commodity, Quantity: o.Quantity}}
	f := w.deps.Ledger.Commit
	if !o.State.Live() {
		f = w.deps.Ledger.Release
	}
	codes, err := f(w.ctx, cellOf(o.Activity), s)
	must(w.t, err)
	if codes[0] != lua.Reserved {
		w.t.Fatalf("settled with code %d", codes[0])
	}
}

// exec runs a statement with ? for the parameters on the world's database.
func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	result, err := w.store.DB().ExecContext(w.ctx, statement, args...)
	must(w.t, err)
	changed(w.t, result)
}

func changed(t testing.TB, r sql.Result) {
	t.Helper()
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("the damage changed %d rows (%v)", n, err)
	}
}

func key(id sale.ID, what string) string { return "seckill:{" + id.String() + ".0}:" + what }

// newMortal is an embedded world whose Redis can be stopped.
func newMortal(t *testing.T) (w *world, stop func()) {
	t.Helper()
	m := miniredis.NewMiniRedis()
	must(t, m.Start())
	t.Cleanup(m.Close)
	w = newWorld(t, m.Addr(), "", lua.Options{Embedded: true})
	return w, func() { m.SetError("LOADING stopped by a test") }
}
