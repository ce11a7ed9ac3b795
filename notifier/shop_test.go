package notifier

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret = "0123456789abcdef0123456789abcdef"
	origin = "https://shop.test"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// shop is a running notifier with its Redis, and an activity and users that no other test has.
type shop struct {
	t        *testing.T
	n        *Notifier
	rdb      *redis.Client // the test's own way to Redis
	key      *sale.TokenKey
	signer   *identity.Signer
	activity sale.ID
	nonce    uint64
	stop     func() // ends the notifier and waits for it
}

// onEach runs a test on miniredis and on real Redis.
func onEach(t *testing.T, test func(t *testing.T, addr string)) {
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) { t.Parallel(); test(t, miniredis.RunT(t).Addr()) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, stacktest.Redis(t)) })
}

// open starts a notifier that sees Redis at addr; set changes its configuration and times.
func open(t *testing.T, addr string, set func(*Config, *times)) *shop {
	t.Helper()
	return openVia(t, addr, addr, set)
}

// openVia starts a notifier that reaches Redis by another address than the test does.
func openVia(t *testing.T, addr, via string, set func(*Config, *times)) *shop {
	t.Helper()
	cfg := Config{AllowedOrigins: []string{origin}, MaxConnections: 1000, MaxPerUser: 8, MaxWatches: 64, MaxSubscriptions: 16, Queue: 256, RestartSpread: 5 * time.Second}
	clocks := usual
	clocks.linger = 500 * time.Millisecond
	if set != nil {
		set(&cfg, &clocks)
	}
	s := &shop{t: t, key: sale.NewTokenKey([]byte(secret)), activity: someID()}
	var err error
	if s.signer, err = identity.NewSigner(identity.Config{Key: secret}); err != nil {
		t.Fatal(err)
	}
	verifier, err := identity.NewVerifier(identity.Config{Key: secret})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.rdb = redis.NewClient(&redis.Options{Addr: addr})
	own := redis.NewClient(&redis.Options{Addr: via, ClientName: s.name(), ContextTimeoutEnabled: true, MaxRetries: -1})
	s.n, err = New(cfg, Deps{Listener: listener, RDB: own, Ledger: lua.New(own, lua.Options{}), Verifier: verifier, TokenKey: s.key,
		Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	s.n.times = clocks
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.n.Run(ctx) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		own.Close()
	}
	t.Cleanup(func() {
		s.stop()
		s.rdb.Del(context.Background(), s.redisKey("res"), s.redisKey("stock"), s.redisKey("meta"))
		s.rdb.Close()
	})
	eventually(t, "ready", func() bool { return s.n.Ready() == nil })
	return s
}

func someID() sale.ID { return sale.ID(1<<53 + rand.Int64N(1<<62)) }

// eventually polls, for states that nothing signals.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// name is what the notifier's connections are called in Redis.
func (s *shop) name() string { return "notifier-" + s.activity.String() }

func (s *shop) redisKey(name string) string {
	return fmt.Sprintf("seckill:{%s.0}:%s", s.activity, name)
}

func (s *shop) token(user sale.ID) sale.Token {
	s.nonce++
	return s.key.Sign(sale.TokenClaims{User: user, Activity: s.activity, Nonce: s.nonce})
}

func (s *shop) jwt(user sale.ID) string {
	s.t.Helper()
	token, err := s.signer.Sign(user, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// outcome is what a worker would say about a token of the user now.
func outcome(user sale.ID, token sale.Token, code sale.Code) sale.Outcome {
	o := sale.Outcome{User: user, Token: token, Outcome: code, At: now()}
	if code != sale.Accepted && code != sale.Failed {
		o.OrderNo = 9007199254740993
	}
	if code == sale.PendingPayment {
		o.PayBy = o.At + 900_000
	}
	return o
}

// record writes what the ledger's scripts would have written into a reservation.
func (s *shop) record(o sale.Outcome) {
	s.t.Helper()
	state, settled := "C", o.At
	switch o.Outcome {
	case sale.Accepted:
		state, settled = "O", 0
	case sale.Failed, sale.Cancelled, sale.Closed:
		state = "R"
	}
	packed := fmt.Sprintf("%s|%d|7|1|9900|0|%d|%d|%s|%s|%d|%d", state, o.User, o.At, o.OrderNo, o.Outcome, o.Reason, o.PayBy, settled)
	if err := s.rdb.HSet(s.t.Context(), s.redisKey("res"), string(o.Token), packed).Err(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) publish(outcomes ...sale.Outcome) {
	s.t.Helper()
	payload, err := json.Marshal(outcomes)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.rdb.Publish(s.t.Context(), lua.OutcomeChannel, payload).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// setStock writes an item's remaining units under a version.
func (s *shop) setStock(commodity sale.ID, remaining, version int64) {
	s.t.Helper()
	_, err := s.rdb.TxPipelined(s.t.Context(), func(p redis.Pipeliner) error {
		p.HSet(s.t.Context(), s.redisKey("meta"), "epoch", 1, "version", version, "status", "live")
		p.HSet(s.t.Context(), s.redisKey("stock"), commodity.String(), remaining)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
