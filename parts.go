package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"

	"floodgate/identity"
	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
	"floodgate/sql"
)

// parts are what roles are made of, opened once a process and closed in reverse order.
type parts struct {
	cfg      Config
	log      *slog.Logger
	registry *prometheus.Registry
	rdb      redis.UniversalClient
	ledger   *lua.Ledger
	store    *sql.Store
	producer mq.Producer
	consumer mq.Consumer
	backlog  mq.Backlog
	letters  mq.DeadLetters
	internal *identity.Internal
	tokens   *sale.TokenKey
	verifier *identity.Verifier
	signer   *identity.Signer // nil unless demo
	owner    string           // unique to this process
	embedded bool             // Redis lives in this process
	closers  []func()
}

func newParts(cfg Config, log *slog.Logger) *parts {
	p := &parts{cfg: cfg, log: log, registry: prometheus.NewRegistry()}
	p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	redis.SetLogger(clientLog{log}) // its own goes to stderr as bare text
	host, _ := os.Hostname()        // empty is unique enough with what follows
	p.owner = fmt.Sprintf("%s/%d/%s", host, os.Getpid(), secret()[:8])
	return p
}

// clientLog takes what the Redis client says of its connections: whoever made the call tells the error.
type clientLog struct{ log *slog.Logger }

// Printf is what the client calls; safe for concurrent use.
func (c clientLog) Printf(ctx context.Context, format string, v ...any) {
	c.log.DebugContext(ctx, "Redis client", "text", fmt.Sprintf(format, v...))
}

// close closes what was opened, last first.
func (p *parts) close() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		p.closers[i]()
	}
}

func (p *parts) onClose(f func()) { p.closers = append(p.closers, f) }

// step runs one line of the start and says how long it took.
func (p *parts) step(name string, f func() error) error {
	began := time.Now()
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.log.Debug("started", "step", name, "ms", time.Since(began).Milliseconds())
	return nil
}

// openKeys makes what signs: tokens of buyers, request tokens, and what processes say to each other.
func (p *parts) openKeys() error {
	if p.cfg.Internal.Key == "" {
		return usagef("internal.key: missing: give every process the same secret of at least 32 bytes")
	}
	if p.cfg.Auth.Key == "" {
		return usagef("auth.key: missing: give every process the shop's key (auth.alg is %s)", p.cfg.Auth.Alg)
	}
	p.internal, p.tokens = identity.NewInternal([]byte(p.cfg.Internal.Key)), sale.NewTokenKey([]byte(p.cfg.Internal.Key))
	var err error
	if p.verifier, err = identity.NewVerifier(p.cfg.Auth); err != nil {
		return usagef("auth: %w", err)
	}
	if p.cfg.Demo {
		if p.signer, err = identity.NewSigner(p.cfg.Auth); err != nil {
			return usagef("demo: logging in by themselves needs an auth.key that can sign: %w", err)
		}
	}
	return nil
}

// madeKey reads the secret in the data folder, and makes it at the first start.
func (p *parts) madeKey(name string) (string, error) {
	file := filepath.Join(p.cfg.Data.Dir, name)
	text, err := os.ReadFile(file)
	if err == nil && len(strings.TrimSpace(string(text))) >= 32 {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", usagef("data.dir: %w", err)
	}
	key := secret()
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		return "", usagef("data.dir: cannot write %w", err)
	}
	return key, nil
}

// secret is 32 random bytes in hex.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return hex.EncodeToString(b)
}

// openDataDir makes the folder and takes its lock: two processes in one folder would each believe in a Redis of their own.
func (p *parts) openDataDir() error {
	dir := p.cfg.Data.Dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return usagef("data.dir: %w: choose a folder that can be written", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return usagef("data.dir: %w: choose a folder that can be written", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return usagef("data.dir: %s is in use by another floodgate serve: stop it, or choose another folder", dir)
	}
	p.onClose(func() { lock.Close() })
	return nil
}

// openRedis makes the client of a real Redis. It does not connect: a role starts while Redis is away, and answers busy.
func (p *parts) openRedis(ctx context.Context) error {
	c := p.cfg.Redis
	if len(c.Addrs) == 0 {
		return usagef("redis.addrs: missing: this role needs a Redis (only serve has one inside)")
	}
	p.rdb = redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: c.Addrs, MasterName: c.Sentinel, Username: c.Username, Password: c.Password, IsClusterMode: c.Sentinel == "" && len(c.Addrs) > 1,
		// A script that was not answered is asked again by whoever called it, who knows what that means: never by the client.
		MaxRetries: -1, ContextTimeoutEnabled: true, DialTimeout: time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second,
		PoolSize: 32, MinIdleConns: 4, PoolTimeout: time.Second,
	})
	p.onClose(func() { _ = p.rdb.Close() })
	p.ledger = lua.New(p.rdb, lua.Options{})
	if err := p.ledger.Load(ctx); err != nil {
		p.log.Warn("Redis does not answer yet", "redis.addrs", c.Addrs, "error", err)
	}
	return nil
}

// openStore connects to the database and refuses one whose migrations have not run.
func (p *parts) openStore(ctx context.Context) error {
	cfg := p.cfg.DB
	if cfg.Driver == sql.SQLite && cfg.DSN == "" {
		cfg.DSN = filepath.Join(p.cfg.Data.Dir, "floodgate.db")
	}
	store, err := sql.Open(ctx, cfg)
	if err != nil {
		return usageError{err}
	}
	p.onClose(func() { _ = store.Close() })
	p.store = store
	return nil
}

// checkMigrated refuses a database that lacks a migration.
func (p *parts) checkMigrated(ctx context.Context) error {
	lines, err := p.store.Migrate(ctx, "status")
	if err != nil {
		return err
	}
	for _, l := range lines {
		if strings.Contains(l, "pending") {
			return usagef("the database lacks migrations (%s): run `floodgate migrate up` first", l)
		}
	}
	return nil
}

// openQueue makes the order queue's ends.
func (p *parts) openQueue() (err error) {
	opts := []mq.Option{mq.WithMetrics(p.registry), mq.WithLogger(p.log)}
	if p.cfg.MQ.Driver == "table" {
		t := mq.NewTable(p.store.DB(), opts...)
		p.producer, p.consumer, p.backlog, p.letters = t, t, t, t
		return nil
	}
	producer, err := mq.NewRocketProducer(p.cfg.MQ, p.log, opts...)
	if err != nil {
		return usagef("mq: %w", err)
	}
	p.producer = producer
	p.onClose(func() { _ = producer.Close() })
	if p.consumer, err = mq.NewRocketConsumer(p.cfg.MQ, p.log, opts...); err != nil {
		return usagef("mq: %w", err)
	}
	admin, err := mq.NewRocketAdmin(p.cfg.MQ, p.log, opts...)
	if err != nil {
		return usagef("mq: %w", err)
	}
	p.backlog, p.letters = admin, admin
	return nil
}

// listen opens an address for a role; a port in use is said with the key to change.
func listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usagef("%s: cannot listen on %s: %v: stop what uses it, or choose another with --set %s=host:port", key, address, errors.Unwrap(err), key)
	}
	return l, nil
}
