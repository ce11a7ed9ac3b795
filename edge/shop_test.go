package edge

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
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
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// The RocketMQ client's cache of parsed names has one cleaner for the process, started by importing it.
		goleak.IgnoreAnyFunction("github.com/patrickmn/go-cache.(*janitor).Run"))
}

const testOrigin = "https://shop.test"

var secret = []byte("a secret of the tests, 32 bytes and more")

// ids hands out numbers that no other test and no other run uses: the shared Redis keeps what is written there.
var ids atomic.Int64

func init() { ids.Store(time.Now().UnixNano()) }

func newID() sale.ID { return sale.ID(ids.Add(1)) }

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
		IdleTimeout: time.Minute, Connections: 10000, SaveMemory: true}
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
	rdb := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: 5 * time.Second, PoolSize: 16})
	t.Cleanup(func() { rdb.Close() })
	s.rdb = rdb
	s.ledger = lua.New(s.rdb, lua.Options{Embedded: s.mini != nil})
	must(t, s.ledger.Load(t.Context()))
	s.own = &own{Ledger: s.ledger, client: rdb}
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
	if set.ledger == nil { // the first read is done: what a test breaks from here on it breaks in mid-sale
		eventually(t, "ready", func() bool { return s.edge.Ready() == nil })
	}
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
	s.stop = nil // Run is not called again
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
