package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"floodgate/console"
	"floodgate/edge"
	"floodgate/notifier"
	"floodgate/web"
	"floodgate/worker"
)

// role is something that runs until its context ends and knows whether it is ready.
type role interface {
	Run(ctx context.Context) error
	Ready() error
}

func newLog(cfg Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Log.Level)) // checked by load
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// newEdge wires an edge.
func (p *parts) newEdge(l net.Listener) (*edge.Edge, error) {
	d := edge.Deps{
		Listener: l, Ledger: p.ledger, RDB: p.rdb, Producer: p.producer, Verifier: p.verifier, TokenKey: p.tokens, Internal: p.internal,
		Logger: p.log, Registerer: p.registry, Demo: p.cfg.Demo, SocketURL: p.cfg.Notifier.PublicURL,
	}
	if p.signer != nil {
		d.Signer = p.signer
	}
	cfg := p.cfg.Edge
	cfg.Workers = workerURLs(p.cfg.Edge.Workers)
	for _, f := range web.Files() {
		d.Pages = append(d.Pages, edge.Page(f))
	}
	e, err := edge.New(cfg, d)
	return e, wrong(err)
}

// workerURLs are the workers' addresses as the edge wants them; host:port will do in a configuration.
func workerURLs(addresses []string) []string {
	out := make([]string, len(addresses))
	for i, w := range addresses {
		if out[i] = w; !strings.Contains(w, "://") {
			out[i] = "http://" + w
		}
	}
	return out
}

func (p *parts) newWorker(l net.Listener) (*worker.Worker, error) {
	w, err := worker.New(p.cfg.Worker, worker.Deps{
		Listener: l, Ledger: p.ledger, Store: p.store, Consumer: p.consumer, Backlog: p.backlog, Letters: p.letters, Internal: p.internal,
		Topic: p.cfg.MQ.Topic, Owner: p.owner, Embedded: p.embedded, Log: p.log, Registry: p.registry,
	})
	return w, wrong(err)
}

func (p *parts) newNotifier(l net.Listener) (*notifier.Notifier, error) {
	cfg := p.cfg.Notifier
	if len(cfg.AllowedOrigins) == 0 {
		cfg.AllowedOrigins = p.cfg.Edge.AllowedOrigins
	}
	n, err := notifier.New(cfg, notifier.Deps{Listener: l, RDB: p.rdb, Ledger: p.ledger, Verifier: p.verifier, TokenKey: p.tokens, Logger: p.log, Registerer: p.registry})
	return n, wrong(err)
}

func (p *parts) newConsole(l net.Listener, ready func() error) (*console.Console, error) {
	token, err := p.madeKey(operatorToken)
	if err != nil {
		return nil, err
	}
	d := console.Deps{
		Listener: l, Store: p.store, Ledger: p.ledger, Backlog: p.backlog, Letters: p.letters, Topic: p.cfg.MQ.Topic, Token: token,
		Log: p.log, Gatherer: p.registry, Ready: ready, Version: version,
	}
	if p.signer != nil {
		d.Signer = p.signer
	}
	c, err := console.New(p.cfg.Console, d)
	return c, wrong(err)
}

// operatorToken is the file in data.dir that lets an operator in.
const operatorToken = "operator.token"

// wrong marks what a part's New refuses as a wrong configuration.
func wrong(err error) error {
	if err == nil || errors.As(err, new(usageError)) {
		return err
	}
	return usageError{err}
}

// stages runs roles until ctx ends or one of them fails, and stops them in the order given: who takes new work first, who
// finishes it last. It returns the first failure.
func stages(ctx context.Context, roles ...role) error {
	type running struct {
		cancel context.CancelFunc
		done   chan struct{}
	}
	all := make([]running, len(roles))
	var g errgroup.Group
	failed, fail := context.WithCancel(ctx)
	defer fail()
	for i, r := range roles {
		rctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		all[i] = running{cancel, make(chan struct{})}
		g.Go(func() error {
			defer close(all[i].done)
			defer fail()
			return r.Run(rctx)
		})
	}
	<-failed.Done()
	for _, r := range all {
		r.cancel()
		<-r.done
	}
	return g.Wait()
}

// ops is the small listener for metrics and health that every role has beside its own.
type ops struct {
	l     net.Listener
	parts *parts
	ready func() error
}

func (o *ops) Run(ctx context.Context) error {
	return console.ServeOps(ctx, o.l, console.Ops(o.parts.registry, o.ready))
}

func (o *ops) Ready() error { return nil }

// runRole is the life of a process with one role: connect, construct, say ready, run, stop, close.
func runRole(ctx context.Context, cfg Config, name string, connect []func(*parts) error, address string, build func(*parts, net.Listener) (role, error)) error {
	began := time.Now()
	p := newParts(cfg, newLog(cfg))
	defer p.close()
	if p.cfg.MQ.Driver == "table" && name != "notifier" {
		return usagef("mq.driver: table lives inside `floodgate serve`: %s needs rocketmq", name)
	}
	for _, f := range connect {
		if err := f(p); err != nil {
			return err
		}
	}
	l, err := listen(name+".listen", address)
	if err != nil {
		return err
	}
	r, err := build(p, l)
	if err != nil {
		return err
	}
	ol, err := listen("console.listen", cfg.Console.Listen)
	if err != nil {
		return err
	}
	sayReady(map[string]string{name: l.Addr().String(), "console": ol.Addr().String()}, began)
	return stages(ctx, r, &ops{ol, p, r.Ready})
}

// sayReady prints the start line that scripts wait for.
func sayReady(what map[string]string, began time.Time) {
	what["msg"] = "ready"
	what["took"] = time.Since(began).Round(time.Millisecond).String()
	_ = json.NewEncoder(os.Stdout).Encode(what)
}

func runEdge(ctx context.Context, cfg Config) error {
	return runRole(ctx, cfg, "edge", []func(*parts) error{(*parts).openKeys, with(ctx, (*parts).openRedis), (*parts).openQueue},
		cfg.Edge.Listen, func(p *parts, l net.Listener) (role, error) { return p.newEdge(l) })
}

func runWorker(ctx context.Context, cfg Config) error {
	return runRole(ctx, cfg, "worker", []func(*parts) error{(*parts).openKeys, with(ctx, (*parts).openRedis), with(ctx, (*parts).openStore),
		with(ctx, (*parts).checkMigrated), (*parts).openQueue},
		cfg.Worker.Listen, func(p *parts, l net.Listener) (role, error) { return p.newWorker(l) })
}

func runNotifier(ctx context.Context, cfg Config) error {
	return runRole(ctx, cfg, "notifier", []func(*parts) error{(*parts).openKeys, with(ctx, (*parts).openRedis)},
		cfg.Notifier.Listen, func(p *parts, l net.Listener) (role, error) { return p.newNotifier(l) })
}

// with gives a step its context.
func with(ctx context.Context, f func(*parts, context.Context) error) func(*parts) error {
	return func(p *parts) error { return f(p, ctx) }
}

func runConsole(ctx context.Context, cfg Config) error {
	began := time.Now()
	p := newParts(cfg, newLog(cfg))
	defer p.close()
	if err := os.MkdirAll(cfg.Data.Dir, 0o700); err != nil {
		return usagef("data.dir: %w", err)
	}
	for _, f := range []func(*parts) error{(*parts).openKeys, with(ctx, (*parts).openRedis), with(ctx, (*parts).openStore), with(ctx, (*parts).checkMigrated), (*parts).openQueue} {
		if err := f(p); err != nil {
			return err
		}
	}
	l, err := listen("console.listen", cfg.Console.Listen)
	if err != nil {
		return err
	}
	c, err := p.newConsole(l, func() error { return p.store.Ping(ctx) })
	if err != nil {
		return err
	}
	sayReady(map[string]string{"console": l.Addr().String(), "operator_token_file": filepath.Join(cfg.Data.Dir, operatorToken)}, began)
	return stages(ctx, c)
}
