// Package notifier tells buyers over WebSockets how their purchases end and what is left in stock. It reads Redis only
// and holds nothing that cannot be read again: outcomes come over Pub/Sub and are always readable from the ledger.
//
// Published outcomes and readings of the ledger all go through [hub.deliver], which tells each connection each step of
// a request token once and never a step back. Nothing is missed between a poll and a push: a watch is registered
// before its snapshot is read, and everything unfinished is read again when the subscription was made again and every
// few seconds.
//
// A connection belongs to the user whom its token named when it was opened. It stays open when that token expires:
// it only ever tells what that user may know, and every new connection needs a token that is valid.
package notifier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"floodgate/identity"
	"floodgate/lua"
	"floodgate/sale"
)

// Ledger is what a notifier reads of the ledger.
type Ledger interface {
	Reservations(ctx context.Context, c lua.Cell, tokens ...sale.Token) (map[sale.Token]sale.Reservation, error)
	// Stock needs to fill Opened, Epoch, Version and Remaining only.
	Stock(ctx context.Context, c lua.Cell) (lua.State, error)
}

// Verifier tells whom a buyer's token names.
type Verifier interface {
	Verify(token string) (identity.User, error)
}

// Deps is what a notifier works with; all are needed and may be shared.
type Deps struct {
	Listener   net.Listener // taken over: Run closes it
	RDB        redis.UniversalClient
	Ledger     Ledger
	Verifier   Verifier
	TokenKey   *sale.TokenKey
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// times are the durations that tests shorten.
type times struct {
	auth   time.Duration // for the first message; the contract's
	ping   time.Duration // proxies forget connections that are quiet for 30 to 60 s
	pong   time.Duration // two pings lost and a bit
	write  time.Duration // a frame that takes longer ends the connection without a word
	stuck  time.Duration // a frame that takes longer ends it with a close code
	linger time.Duration // for a client's answer to our close frame
	stock  time.Duration // between two readings of an activity: at most 5 changes a second
	reread time.Duration // between two readings of everything unfinished
	redis  time.Duration // for one reading
	stop   time.Duration // for all connections to end
}

var usual = times{
	auth: 5 * time.Second, ping: 25 * time.Second, pong: 60 * time.Second, write: 10 * time.Second, stuck: 4 * time.Second,
	linger: 5 * time.Second, stock: 200 * time.Millisecond, reread: 3 * time.Second, redis: 2 * time.Second, stop: 8 * time.Second,
}

// Notifier serves WebSockets. Make one with New, run it once.
type Notifier struct {
	cfg     Config
	deps    Deps
	times   times
	metrics *metrics
	hub     *hub
	board   *board

	behind     chan struct{} // pushes may have been missed
	subscribed atomic.Bool
	stopping   atomic.Bool
	failing    atomic.Bool   // the last reading of Redis failed
	complaint  *rate.Limiter // of failures in the log
}

// New checks the configuration; an error names the key and what to change.
func New(cfg Config, deps Deps) (*Notifier, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m, err := newMetrics(deps.Registerer, cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot register the notifier's metrics: %w", err)
	}
	n := &Notifier{cfg: cfg, deps: deps, times: usual, metrics: m, hub: newHub(cfg, m),
		behind: make(chan struct{}, 1), complaint: rate.NewLimiter(rate.Every(5*time.Second), 3)}
	n.board = newBoard(n)
	return n, nil
}

// Ready is nil while connections are taken and what they ask for can be read; otherwise it says what is missing.
func (n *Notifier) Ready() error {
	switch {
	case n.stopping.Load():
		return errors.New("stopping")
	case !n.subscribed.Load():
		return errors.New("not yet subscribed to outcomes in Redis")
	case n.failing.Load():
		return errors.New("the last reading of Redis failed")
	}
	return nil
}

// Run serves until ctx ends. Then it takes nobody in, writes what is queued, tells everybody to come back later
// (1012), and returns within 10 s.
func (n *Notifier) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.listen(ctx) })
	g.Go(func() error { return n.catchUp(ctx) })
	g.Go(func() error { return n.board.run(ctx) })
	srv := n.server(ctx)
	g.Go(func() error {
		if err := srv.Serve(n.deps.Listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("cannot serve WebSockets: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		n.stop(srv)
		return nil
	})
	return g.Wait()
}

func (n *Notifier) server(ctx context.Context) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ws", n.upgrade(ctx))
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 10 * time.Second,
		MaxHeaderBytes: 8 << 10, ErrorLog: slog.NewLogLogger(n.deps.Logger.Handler(), slog.LevelWarn),
	}
}

// stop ends all connections: with a word first, by force for those that do not go.
func (n *Notifier) stop(srv *http.Server) {
	n.stopping.Store(true)
	n.hub.restart()
	ctx, cancel := context.WithTimeout(context.Background(), n.times.stop)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		srv.Close()
	}
	ended := make(chan struct{})
	go func() { defer close(ended); n.hub.wg.Wait() }()
	select {
	case <-ended:
	case <-ctx.Done():
		n.hub.cut()
		<-ended
	}
}

// failed notes how a reading went and logs a failure, seldom: Redis away fails every one of them.
func (n *Notifier) failed(what string, err error) bool {
	if errors.Is(err, context.Canceled) {
		return true
	}
	n.failing.Store(err != nil)
	if err == nil {
		return false
	}
	n.metrics.redisFail.Inc()
	if n.complaint.Allow() {
		n.deps.Logger.Warn(what, "error", err)
	}
	return true
}
