package edge

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"floodgate/deploy/stacktest"
	"floodgate/identity"
	"floodgate/lua"
	"floodgate/sale"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp's cleaner of idle workers sleeps out its 10 s after the server has stopped, then ends by itself.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		// fasthttp's clock of the Date header is one for the process and never ends.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

const testOrigin = "https://shop.test"

var secret = []byte("a secret of the tests, 32 bytes and more")

// ids hands out numbers that no other test and no other run uses: the shared Redis keeps what is written there.
var ids atomic.Int64

func init() { ids.Store(time.Now().UnixNano()) }

func newID() sale.ID { return sale.ID(ids.Add(1)) }

// backlog is a queue in memory that can be told to fail.
type backlog struct {
	mu       sync.Mutex
	messages []sale.Message
	sends    int
	fail     func(batch []sale.Message) error // nil: works; called without mu
}

func (b *backlog) Send(_ context.Context, batch []sale.Message) error {
	b.mu.Lock()
	fail := b.fail
	b.mu.Unlock()
	if fail != nil {
		if err := fail(batch); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sends++
	b.messages = append(b.messages, batch...)
	return nil
}

func (b *backlog) failWith(f func([]sale.Message) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = f
}

func (b *backlog) all() []sale.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]sale.Message(nil), b.messages...)
}

// own lets an edge on the shared Redis see the activities of its own test only.
type own struct {
	*lua.Ledger
	mu  sync.Mutex
	ids []sale.ID
}

func (o *own) Activities(ctx context.Context) ([]sale.ID, error) {
	all, err := o.Ledger.Activities(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	var mine []sale.ID
	for _, id := range o.ids {
		for _, a := range all {
			if a == id {
				mine = append(mine, id)
			}
		}
	}
	return mine, err
}

// shop is one edge on real HTTP with everything around it.
type shop struct {
	t       testing.TB
	edge    *Edge
	url     string
	rdb     redis.UniversalClient
	ledger  *lua.Ledger
	own     *own
	mini    *miniredis.Miniredis // nil on real Redis
	queue   *backlog
	signer  *identity.Signer
	key     *sale.TokenKey
	client  *http.Client
	stop    context.CancelFunc
	stopped chan error
	metrics *prometheus.Registry
}

// setup is what a test may change before the edge starts.
type setup struct {
	cfg    Config
	deps   Deps
	redis  string // address; "" is a miniredis
	before []sale.Activity
	ledger func(Ledger) Ledger
	start  sale.Millis // the miniredis clock
}

func testConfig() Config {
	return Config{Listen: "127.0.0.1:0", AllowedOrigins: []string{testOrigin}, TokenTTL: 10 * time.Minute, ReserveTimeout: 2 * time.Second,
		SendTimeout: 5 * time.Second, WorkerTimeout: time.Second, Waiting: 8192, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
		IdleTimeout: time.Minute, Connections: 10000}
}

// newActivity sells now.
func newActivity(total int64, limit int) sale.Activity {
	now := sale.At(time.Now())
	return sale.Activity{ID: newID(), Title: "Sale", StartsAt: now - 3_600_000, EndsAt: now + 3_600_000, PerUserLimit: limit,
		PayWindow: 15 * time.Minute, Status: sale.Live,
		Items: []sale.Item{{Commodity: newID(), Title: "Thing", Price: 9900, Total: total}}}
}

func onRealRedis(t testing.TB) func(*setup) {
	return func(s *setup) { s.redis = stacktest.Redis(t) }
}

func selling(all ...sale.Activity) func(*setup) {
	return func(s *setup) { s.before = append(s.before, all...) }
}

func newShop(t testing.TB, options ...func(*setup)) *shop {
	t.Helper()
	s := &shop{t: t, queue: &backlog{}, key: sale.NewTokenKey(secret), stopped: make(chan error, 1), metrics: prometheus.NewRegistry()}
	set := setup{cfg: testConfig()}
	for _, o := range options {
		o(&set)
	}
	address := set.redis
	if address == "" {
		s.mini = miniredis.NewMiniRedis()
		must(t, s.mini.Start())
		if set.start != 0 {
			s.mini.SetTime(set.start.Time())
		}
		t.Cleanup(s.mini.Close)
		address = s.mini.Addr()
	}
	s.rdb = redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: 5 * time.Second, PoolSize: 16})
	t.Cleanup(func() { s.rdb.Close() })
	s.ledger = lua.New(s.rdb, lua.Options{Embedded: s.mini != nil})
	must(t, s.ledger.Load(t.Context()))
	s.own = &own{Ledger: s.ledger}
	for _, a := range set.before {
		s.open(a)
	}
	s.start(set)
	return s
}

func (s *shop) start(set setup) {
	t := s.t
	cfg := identity.Config{Alg: "HS256", Key: string(secret)}
	verifier, err := identity.NewVerifier(cfg)
	must(t, err)
	s.signer, err = identity.NewSigner(cfg)
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	d := set.deps
	d.Listener, d.RDB, d.TokenKey, d.Verifier = listener, s.rdb, s.key, verifier
	d.Ledger = s.own
	if set.ledger != nil {
		d.Ledger = set.ledger(s.own)
	}
	if d.Producer == nil {
		d.Producer = s.queue
	}
	if d.Demo {
		d.Signer = s.signer
	}
	d.Internal, d.Registerer = identity.NewInternal(secret), s.metrics
	d.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if os.Getenv("EDGE_TEST_LOG") != "" {
		d.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	s.edge, err = New(set.cfg, d)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go func() { s.stopped <- s.edge.Run(ctx) }()
	s.url = "http://" + listener.Addr().String()
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 30 * time.Second}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.halt()
	})
}

// halt stops the edge and waits; a second time it does nothing.
func (s *shop) halt() {
	if s.stop == nil {
		return
	}
	s.stop()
	s.stop = nil
	if err := <-s.stopped; err != nil {
		s.t.Errorf("Run: %v", err)
	}
}

// open loads an activity's whole stock.
func (s *shop) open(a sale.Activity) {
	s.t.Helper()
	must(s.t, a.Check())
	stock := map[sale.ID]int64{}
	for _, i := range a.Items {
		stock[i.Commodity] = i.Total
	}
	code, err := s.ledger.Open(s.t.Context(), a, 1, stock)
	must(s.t, err)
	if code != lua.Reserved {
		s.t.Fatalf("open: code %d", code)
	}
	s.own.mu.Lock()
	s.own.ids = append(s.own.ids, a.ID)
	s.own.mu.Unlock()
	if s.mini == nil {
		s.t.Cleanup(func() { _ = s.ledger.Drop(context.Background(), lua.Cell{Activity: a.ID}) })
	}
}

func (s *shop) remaining(a sale.Activity) int64 {
	s.t.Helper()
	state, err := s.ledger.Inspect(s.t.Context(), lua.Cell{Activity: a.ID})
	must(s.t, err)
	return state.Remaining[a.Items[0].Commodity]
}

// jwt is a buyer's identity.
func (s *shop) jwt(user sale.ID) string {
	token, err := s.signer.Sign(user, time.Hour)
	must(s.t, err)
	return token
}

// requestToken signs one as the edge does.
func (s *shop) requestToken(user, activity sale.ID) sale.Token {
	return s.key.Sign(sale.TokenClaims{User: user, Activity: activity, Nonce: uint64(ids.Add(1)), Expires: sale.At(time.Now().Add(300 * 24 * time.Hour))})
}

// answerOf is an HTTP answer, read.
type answerOf struct {
	status int
	header http.Header
	body   []byte
}

// request is one HTTP request of a test.
type request struct {
	method, path, body string
	header             map[string]string
}

func (s *shop) do(r request) answerOf {
	s.t.Helper()
	a, err := s.try(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	return a
}

// try may be called from any goroutine.
func (s *shop) try(r request) (answerOf, error) {
	q, err := http.NewRequest(r.method, s.url+r.path, strings.NewReader(r.body))
	if err != nil {
		return answerOf{}, err
	}
	for k, v := range r.header {
		q.Header.Set(k, v)
	}
	res, err := s.client.Do(q)
	if err != nil {
		return answerOf{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answerOf{res.StatusCode, res.Header, body}, err
}

func as(jwt string) map[string]string { return map[string]string{"Authorization": "Bearer " + jwt} }

func buyPath(a sale.Activity, item int) string {
	return "/api/activities/" + a.ID.String() + "/items/" + a.Items[item].Commodity.String() + "/orders"
}

func buyBody(token sale.Token, quantity string) string {
	return `{"requestToken":"` + string(token) + `","quantity":` + quantity + `}`
}

// buy is one attempt; may be called from any goroutine.
func (s *shop) buy(a sale.Activity, user sale.ID, token sale.Token, quantity string) (answerOf, error) {
	return s.try(request{"POST", buyPath(a, 0), buyBody(token, quantity), as(s.jwt(user))})
}

func (s *shop) mustBuy(a sale.Activity, user sale.ID, token sale.Token, quantity string) answerOf {
	s.t.Helper()
	r, err := s.buy(a, user, token, quantity)
	must(s.t, err)
	return r
}

// told is the code or outcome of an answer; it also checks what every answer must have.
func (a answerOf) told(t testing.TB) sale.Code {
	t.Helper()
	var b struct {
		Outcome   sale.Code `json:"outcome"`
		RequestID string    `json:"requestId"`
		Error     struct {
			Code    sale.Code `json:"code"`
			Message string    `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(a.body, &b); err != nil {
		t.Fatalf("status %d, body %q: %v", a.status, a.body, err)
	}
	id := a.header.Get("X-Request-Id")
	if len(id) != idLen {
		t.Errorf("X-Request-Id %q", id)
	}
	if b.Error.Code == "" {
		return b.Outcome
	}
	if b.RequestID != id || b.Error.Message == "" {
		t.Errorf("body %s, X-Request-Id %s", a.body, id)
	}
	if want := b.Error.Code.Verdict().HTTP; a.status != want && b.Error.Code != sale.BadRequest {
		t.Errorf("%s with status %d, want %d", b.Error.Code, a.status, want)
	}
	return b.Error.Code
}

func (a answerOf) field(t testing.TB, path ...string) any {
	t.Helper()
	var v any
	must(t, json.Unmarshal(a.body, &v))
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// eventually polls with a deadline; it waits on a timer, not on luck.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		case <-tick.C:
		}
	}
}

// onBoth runs a test on miniredis and on real Redis.
func onBoth(t *testing.T, test func(t *testing.T, option func(*setup))) {
	t.Run("miniredis", func(t *testing.T) { t.Parallel(); test(t, func(*setup) {}) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, onRealRedis(t)) })
}

// tally buys in parallel and counts what was told.
func (s *shop) tally(n int, buy func(i int) (answerOf, error)) map[sale.Code]int {
	s.t.Helper()
	var wg sync.WaitGroup
	answers := make([]answerOf, n)
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { answers[i], errs[i] = buy(i) })
	}
	wg.Wait()
	must(s.t, errors.Join(errs...))
	count := map[sale.Code]int{}
	for _, a := range answers {
		count[a.told(s.t)]++
	}
	return count
}
