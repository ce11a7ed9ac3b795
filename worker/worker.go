// Package worker turns promises into rows: it consumes the order queue, places orders in batches, sweeps reservations that
// nobody has placed, proves the stock after Redis was restarted, and answers the edges' questions about orders.
//
// The way of one purchase here: consume (queue.go) -> submit (placer.go) -> place (place.go: claim, write, settle) -> announce
// (announce.go). The sweep (sweep.go) feeds the same placer from the reservations; keep.go and recover.go look after Redis.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"floodgate/identity"
	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
	"floodgate/sql"
)

// Config is what an operator may set of a worker.
type Config struct {
	Listen        string        `config:"listen" default:"127.0.0.1:8082" help:"address of the order API that edges call"`
	PlaceRate     float64       `config:"place_rate" default:"20000" help:"orders a second that one worker writes at most; what the database can take beside everything else"`
	PlaceTimeout  time.Duration `config:"place_timeout" default:"8s" help:"how long one batch may take before it is offered again; below the 10 s of a graceful stop"`
	Placers       int           `config:"placers" default:"2" help:"batches in hand at once: one waits for Redis while the other waits for the database"`
	SweepEvery    time.Duration `config:"sweep_every" default:"1s" help:"how often due reservations and unannounced orders are looked for"`
	KeepEvery     time.Duration `config:"keep_every" default:"500ms" help:"how often Redis is compared with the database: status, window, added stock, identity"`
	PreheatBefore time.Duration `config:"preheat_before" default:"24h" help:"how long before its start an activity is loaded into Redis by itself"`
}

// Deps are the parts a worker is made of; main wires them.
type Deps struct {
	Listener net.Listener
	Ledger   *lua.Ledger
	Store    *sql.Store
	Consumer mq.Consumer
	Backlog  mq.Backlog
	Letters  mq.DeadLetters
	Internal *identity.Internal
	Topic    string // the name under which placed positions are recorded
	Owner    string // unique to this process: leases are taken in its name
	Embedded bool   // Redis dies with the process, so an empty one is rebuilt; elsewhere an empty one is refused and said
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Worker is one worker; make it with [New] and run it once with [Worker.Run].
type Worker struct {
	cfg Config
	Deps
	ledger    *lua.Ledger
	store     *sql.Store
	log       *slog.Logger
	limit     *rate.Limiter
	mint      *mint
	metrics   *metrics
	jobs      chan *job
	stopped   chan struct{}       // closed when the placers are gone
	unproven  chan []sql.Activity // from the keeper to whoever recovers
	kick      chan struct{}       // asks the keeper to look now
	announced *announcer
	positions *recorder
	current   atomic.Pointer[[]sql.Activity]   // activities that Redis should hold, as last read
	doubted   atomic.Pointer[map[sale.ID]bool] // activities whose stock was not proven then; nil before the first look
	healthy   atomic.Pointer[string]           // why not ready; nil is ready
	swept     sale.Order                       // only the sweep's: the last unannounced order of a full page
	lostSaid  map[sale.ID]int64                // only the keeper's: what was said of activities that Redis lost
	lostNow   int                              // only the keeper's: how many those are at this turn
}

// Check names the first setting that cannot be used.
func (c Config) Check() error {
	for _, rule := range []struct {
		ok   bool
		text string
	}{
		{c.PlaceRate >= lua.MaxBatch, fmt.Sprintf("worker.place_rate: want at least %d, one full batch a second", lua.MaxBatch)},
		{c.PlaceTimeout > 0 && c.PlaceTimeout < 10*time.Second, "worker.place_timeout: want more than 0 and less than 10s"},
		{c.Placers >= 1 && c.Placers <= 16, "worker.placers: want 1 to 16"},
		{c.SweepEvery >= 10*time.Millisecond, "worker.sweep_every: want at least 10ms"},
		{c.KeepEvery >= 10*time.Millisecond, "worker.keep_every: want at least 10ms"},
		{c.PreheatBefore > 0, "worker.preheat_before: want more than 0"},
	} {
		if !rule.ok {
			return errors.New(rule.text)
		}
	}
	return nil
}

// New checks the configuration and wires a worker; nothing is started.
func New(cfg Config, d Deps) (*Worker, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	w := &Worker{
		cfg: cfg, Deps: d, ledger: d.Ledger, store: d.Store, log: d.Log,
		limit:    rate.NewLimiter(rate.Limit(cfg.PlaceRate), max(sql.MaxPlace, int(cfg.PlaceRate/10))),
		mint:     newMint(d.Store, d.Owner, d.Log),
		metrics:  newMetrics(d.Registry),
		jobs:     make(chan *job, 64),
		stopped:  make(chan struct{}),
		unproven: make(chan []sql.Activity),
		kick:     make(chan struct{}, 1),
		lostSaid: map[sale.ID]int64{},
	}
	w.announced = newAnnouncer(d.Store)
	w.positions = newRecorder(d.Store, d.Topic)
	w.current.Store(&[]sql.Activity{})
	w.unready("starting")
	return w, nil
}

// Run works until ctx ends, then finishes the batches in hand and returns within 10 s.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.mint.lease(ctx); err != nil {
		w.log.Warn("worker starts without a node id and tries again", "error", err)
	}
	// Stop in the order of the way: the queue first, then the placers, then what they left to announce.
	placing, stopPlacing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPlacing()
	var back errgroup.Group
	back.Go(func() error { return w.announced.run(placing) })
	var placers errgroup.Group
	for range w.cfg.Placers {
		placers.Go(func() error { return w.runPlacer(placing) })
	}
	front, fctx := errgroup.WithContext(ctx)
	front.Go(func() error { return w.serveAPI(fctx) })
	front.Go(func() error { return w.mint.run(fctx) })
	front.Go(func() error { return w.keep(fctx) })
	front.Go(func() error { return w.prove(fctx) })
	front.Go(func() error { return w.sweep(fctx) })
	front.Go(func() error { return w.tidy(fctx) })
	front.Go(func() error { return w.Consumer.Run(fctx, w.consume) })
	err := front.Wait()
	stopPlacing()
	_ = placers.Wait()
	close(w.stopped)
	_ = back.Wait()
	return err
}

// Ready says why the worker cannot place orders now; nil when it can.
func (w *Worker) Ready() error {
	if why := w.healthy.Load(); why != nil {
		return fmt.Errorf("worker: %s", *why)
	}
	return nil
}

func (w *Worker) unready(why string) { w.healthy.Store(&why) }
func (w *Worker) now() sale.Millis   { return sale.At(time.Now()) }

// wake asks the keeper to look at Redis now instead of at its next turn.
func (w *Worker) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// activity is the definition of an activity: from the keeper's last read, or from the database.
func (w *Worker) activity(ctx context.Context, id sale.ID) (sql.Activity, error) {
	for _, a := range *w.current.Load() {
		if a.ID == id {
			return a, nil
		}
	}
	return w.store.Activity(ctx, id)
}

// every calls f at once and then at each interval or when woken, until ctx ends.
func every(ctx context.Context, interval time.Duration, wake <-chan struct{}, f func(context.Context)) error {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		f(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-t.C:
		}
	}
}
