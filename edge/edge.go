// Package edge answers buyers over HTTP. It refuses almost everybody from memory in microseconds, takes a unit in Redis
// for the few who get through, hands their promises to the order queue and says accepted. It never opens the database.
//
// One purchase here: [Edge.buy] is the story, every gate in order. Requests for one item that wait at the same moment
// share one reserve call (till.go), their messages share one send (enqueue.go), and whoever waits is taken along: nobody
// is made to wait. Beside the way stand the catalog (what is sold, a snapshot swapped whole), the sold-out cache (a hint)
// and the remembered tokens of buyers.
package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"floodgate/identity"
	"floodgate/lua"
	"floodgate/sale"
)

// stopWithin bounds a graceful stop: everything in hand answered, then cut.
const stopWithin = 9 * time.Second

// Reserver takes units and notes what the queue has; see lua.API.
type Reserver interface {
	Reserve(ctx context.Context, c lua.Cell, commodity sale.ID, price sale.Cents, batch []lua.ReserveRequest) (lua.ReserveReply, error)
	Enqueued(ctx context.Context, c lua.Cell, pending ...string) error
}

// Reader reads what is sold and where a request token stands; see lua.API.
type Reader interface {
	Activities(ctx context.Context) ([]sale.ID, error)
	Inspect(ctx context.Context, c lua.Cell) (lua.State, error)
	Reservations(ctx context.Context, c lua.Cell, tokens ...sale.Token) (map[sale.Token]sale.Reservation, error)
}

// Ledger is the part of the ledger that an edge uses.
type Ledger interface {
	Reserver
	Reader
}

// Producer is the sending side of the order queue; see mq.Producer.
type Producer interface {
	Send(ctx context.Context, batch []sale.Message) error
}

// Verifier reads a buyer's token; see identity.Verifier.
type Verifier interface {
	Verify(token string) (identity.User, error)
}

// Signer makes a buyer's token for the demo; see identity.Signer.
type Signer interface {
	Sign(user sale.ID, ttl time.Duration) (string, error)
}

// RequestSigner signs what an edge says to a worker; see identity.Internal.
type RequestSigner interface {
	SignRequest(r *http.Request, body []byte)
}

// Deps are the parts that an edge is given. The caller closes what it opened, after Run has returned.
type Deps struct {
	Listener   net.Listener
	Ledger     Ledger
	RDB        redis.UniversalClient // for Pub/Sub only
	Producer   Producer
	Verifier   Verifier
	Signer     Signer // nil unless Demo
	TokenKey   *sale.TokenKey
	Internal   RequestSigner
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Demo       bool
	SocketURL  string // what the page is told about the notifier; may be empty
	Pages      []Page // the buyer's pages
}

// Edge is one edge. Make it with [New], serve with [Edge.Run].
type Edge struct {
	cfg     Config
	deps    Deps
	origins map[string]bool
	proxies []netip.Prefix // whose forwarded addresses are believed; limits by address will ask

	catalog  *catalog
	soldOut  *soldOut
	known    *verified
	acked    *acked
	queue    *gather
	notes    *notes
	workers  *workers
	answers  *answers
	pages    map[string]*page
	metrics  *metrics
	server   *fasthttp.Server
	draining atomic.Bool

	// work is the context of everything asked of Redis and the queue for a buyer. It outlives the listener, so that
	// what is in hand at a stop is still answered.
	work     context.Context
	stopWork context.CancelFunc
}

// New checks the configuration and builds an edge; nothing runs until Run. Its errors name the key that is wrong.
func New(cfg Config, deps Deps) (*Edge, error) {
	proxies, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if deps.Demo && deps.Signer == nil {
		return nil, errors.New("demo needs a key that can sign (auth.alg HS256, or a private key)")
	}
	e := &Edge{cfg: cfg, deps: deps, proxies: proxies, origins: map[string]bool{}, answers: newAnswers()}
	for _, o := range cfg.AllowedOrigins {
		e.origins[o] = true
	}
	e.work, e.stopWork = context.WithCancel(context.Background())
	if e.soldOut, err = newSoldOut(); err != nil {
		return nil, err
	}
	if e.known, err = newVerified(deps.Verifier); err != nil {
		return nil, err
	}
	if e.acked, err = newAcked(); err != nil {
		return nil, err
	}
	e.metrics = newMetrics(e)
	e.catalog = newCatalog(e)
	e.queue = newQueue(e)
	e.notes = newNotes(deps.Ledger, e.metrics)
	e.workers = newWorkers(cfg, deps.Internal)
	if e.pages, err = newPages(deps.Pages, deps); err != nil {
		return nil, err
	}
	e.server = e.newServer()
	if err := e.metrics.register(deps.Registerer); err != nil {
		return nil, fmt.Errorf("cannot register the edge's metrics: %w", err)
	}
	return e, nil
}

// Run serves until ctx ends; then it takes no new work, answers what is in hand and returns within 10 s. Call it once.
// Its error is the listener's; the end of ctx is none.
func (e *Edge) Run(ctx context.Context) error {
	defer e.close()
	// The first read is awaited, so that a ready edge knows its activities; a dead Redis must not stop the start.
	e.catalog.refresh(ctx)

	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	var owned errgroup.Group
	owned.Go(func() error { e.catalog.run(background); return nil })
	owned.Go(func() error { e.notes.run(background); return nil })
	owned.Go(func() error { e.metrics.summarise(background, e.deps.Logger); return nil })

	served := make(chan error, 1)
	go func() { served <- e.server.Serve(e.deps.Listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		err = e.stop(ctx, served)
	}
	stopBackground()
	return errors.Join(err, owned.Wait())
}

// stop is the graceful stop: new work is refused, what is in hand is answered, then the rest is cut.
func (e *Edge) stop(ctx context.Context, served <-chan error) error {
	e.draining.Store(true)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := e.server.ShutdownWithContext(limit); err != nil {
		e.deps.Logger.Warn("edge stopped with connections still open", "error", err.Error())
	}
	// A stop may come before Serve has begun, which then would not hear of the shutdown; a closed listener ends it in any case.
	_ = e.deps.Listener.Close()
	if err := <-served; err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (e *Edge) close() {
	e.stopWork()
	e.workers.close()
	e.soldOut.close()
	e.known.close()
	e.acked.close()
}

// Ready says why this edge should get no buyers now: nil when it knows its activities from a Redis that answers and is
// not stopping.
func (e *Edge) Ready() error {
	if e.draining.Load() {
		return errors.New("stopping")
	}
	return e.catalog.fresh()
}
