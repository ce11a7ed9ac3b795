// Package console is the operators' side of the shop: an HTTP API that creates, opens, pauses and ends activities, adds stock,
// audits the promises over Redis, queue and database, and shows what happened. It writes what is wanted into the database; the
// workers make Redis follow within half a second. What must hold at once, also with every worker dead (pause, resume, preheat),
// it does in Redis too. Health and metrics, which every role serves on a listener of its own, are made here as well.
package console

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
	"floodgate/sql"
)

// Config of the console, key prefix `console.`.
type Config struct {
	Listen    string        `config:"listen" default:"127.0.0.1:9090" help:"address of metrics and health, which every role has, and of the operators' API; loopback unless something in front guards it"`
	ApplyWait time.Duration `config:"apply_wait" default:"3s" help:"how long a change waits for Redis to show it before the answer says that it is not applied yet"`
}

// Check names the first setting that cannot be used.
func (c Config) Check() error {
	if c.ApplyWait < 0 || c.ApplyWait > time.Minute {
		return errors.New(`console.apply_wait: want "0s" to "1m"`)
	}
	return nil
}

// Signer makes buyers' tokens; given only where the shop is a demo.
type Signer interface {
	Sign(user sale.ID, ttl time.Duration) (string, error)
}

// Deps is what a console works with.
type Deps struct {
	Listener net.Listener
	Store    *sql.Store
	Ledger   *lua.Ledger
	Backlog  mq.Backlog
	Letters  mq.DeadLetters
	Topic    string // of the order queue, whose placed positions the database has
	Token    string // the operator token, at least 32 characters
	Signer   Signer // nil unless demo
	Log      *slog.Logger
	Gatherer prometheus.Gatherer
	Ready    func() error // nil: ready while the database answers
	Version  string
}

// Console serves the operators' API. Safe for concurrent use.
type Console struct {
	cfg     Config
	deps    Deps
	handler http.Handler
	now     func() time.Time
}

// minToken keeps an operator token from being guessed.
const minToken = 32

// New checks configuration and parts; it starts nothing.
func New(cfg Config, deps Deps) (*Console, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	switch {
	case len(deps.Token) < minToken:
		return nil, errors.New("operator token: want at least 32 characters")
	case deps.Listener == nil || deps.Store == nil || deps.Ledger == nil || deps.Backlog == nil || deps.Letters == nil || deps.Log == nil || deps.Gatherer == nil:
		return nil, errors.New("console: a part is missing")
	}
	c := &Console{cfg: cfg, deps: deps, now: time.Now}
	c.handler = c.routes()
	return c, nil
}

// Run serves until ctx ends, then answers what is in hand and returns, within 10 s.
func (c *Console) Run(ctx context.Context) error {
	return ServeOps(ctx, c.deps.Listener, c.handler)
}

// Ready is nil while the console's parts answer.
func (c *Console) Ready() error {
	if c.deps.Ready != nil {
		return c.deps.Ready()
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyWait)
	defer cancel()
	return c.deps.Store.Ping(ctx)
}

func (c *Console) routes() http.Handler {
	admin := http.NewServeMux()
	for pattern, f := range map[string]action{
		"POST /admin/api/activities":                                    c.createActivity,
		"GET /admin/api/activities":                                     c.listActivities,
		"GET /admin/api/activities/{activity}":                          c.showActivity,
		"POST /admin/api/activities/{activity}/preheat":                 c.change("preheat", c.preheat),
		"POST /admin/api/activities/{activity}/open":                    c.change("open", c.open),
		"POST /admin/api/activities/{activity}/pause":                   c.change("pause", c.pause),
		"POST /admin/api/activities/{activity}/resume":                  c.change("resume", c.resume),
		"POST /admin/api/activities/{activity}/extend":                  c.change("extend", c.extend),
		"POST /admin/api/activities/{activity}/end":                     c.change("end", c.end),
		"POST /admin/api/activities/{activity}/items/{commodity}/stock": c.addStock,
		"POST /admin/api/activities/{activity}/items/{commodity}/price": c.setPrice,
		"GET /admin/api/activities/{activity}/ledger":                   c.ledger,
		"GET /admin/api/audit":                                          c.auditAll,
		"GET /admin/api/activities/{activity}/audit":                    c.auditOne,
		"GET /admin/api/dead-letters":                                   c.listLetters,
		"POST /admin/api/dead-letters/{letter}/replay":                  c.replayLetter,
		"GET /admin/api/operations":                                     c.operations,
		"GET /admin/api/version":                                        c.version,
		"POST /admin/api/token":                                         c.token,
	} {
		admin.HandleFunc(pattern, c.answer(f))
	}
	admin.HandleFunc("/admin/", c.answer(func(r *http.Request) (any, error) {
		return nil, &Fault{http.StatusNotFound, "not_found", "there is no call " + r.Method + " " + r.URL.Path}
	}))
	admin.HandleFunc("/debug/pprof/", pprof.Index)
	admin.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	admin.HandleFunc("/debug/pprof/profile", pprof.Profile)
	admin.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	admin.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux := http.NewServeMux()
	mux.Handle("/", Ops(c.deps.Gatherer, c.Ready))
	mux.Handle("/admin/", c.guard(admin))
	mux.Handle("/debug/pprof/", c.guard(admin))
	return mux
}
