package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// runServe is everything in one process. Without redis.addrs a Redis lives inside (miniredis), which dies with the process: each
// start rebuilds it from the database by the same recovery that a real Redis gets after a restart.
func runServe(ctx context.Context, cfg Config) error {
	began := time.Now()
	p := newParts(cfg, newLog(cfg))
	defer p.close()
	for _, s := range []struct {
		name string
		run  func() error
	}{
		{"data folder", p.openDataDir},
		{"keys", p.openServeKeys},
		{"redis", func() error { return p.openServeRedis(ctx) }},
		{"database", func() error { return p.openStore(ctx) }},
		{"migrations", func() error { _, err := p.store.Migrate(ctx, "up"); return err }},
		{"queue", p.openQueue},
	} {
		if err := p.step(s.name, s.run); err != nil {
			return err
		}
	}
	var at [4]net.Listener
	for i, a := range [][2]string{{"edge.listen", cfg.Edge.Listen}, {"notifier.listen", cfg.Notifier.Listen}, {"worker.listen", cfg.Worker.Listen}, {"console.listen", cfg.Console.Listen}} {
		var err error
		if at[i], err = listen(a[0], a[1]); err != nil {
			return err
		}
	}
	el, nl, wl, cl := at[0], at[1], at[2], at[3]
	p.introduce(el.Addr(), nl.Addr(), wl.Addr())
	w, err := p.newWorker(wl)
	if err != nil {
		return err
	}
	n, err := p.newNotifier(nl)
	if err != nil {
		return err
	}
	e, err := p.newEdge(el)
	if err != nil {
		return err
	}
	roles := []role{&later{role: e, until: p.rebuilt}, w, n}
	c, err := p.newConsole(cl, func() error {
		for _, r := range roles {
			if err := r.Ready(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if p.cfg.Demo {
		if err := p.step("demo activity", func() error { return p.openDemo(ctx) }); err != nil {
			return err
		}
	}
	p.banner(el.Addr())
	sayReady(map[string]string{"edge": el.Addr().String(), "notifier": nl.Addr().String(), "console": cl.Addr().String(),
		"worker": wl.Addr().String(), "operator_token_file": filepath.Join(cfg.Data.Dir, operatorToken)}, began)
	return stages(ctx, append(roles, c)...)
}

// later is a role that begins when something else holds. Its listener is open meanwhile, so who comes early waits a moment.
type later struct {
	role
	until func(ctx context.Context) bool
}

// Run asks 50 times a second whether the role may begin.
func (l *later) Run(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !l.until(ctx) {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return l.role.Run(ctx)
}

// rebuilt says that the Redis inside holds every activity that it should: before that an edge would call them unknown. It is also
// true where nothing more can be waited for.
func (p *parts) rebuilt(ctx context.Context) bool {
	current, err := p.store.Current(ctx, sale.At(time.Now()), 10_000)
	for _, a := range current {
		if err != nil || a.LiveEpoch == 0 {
			continue // never opened
		}
		var s lua.State
		if s, err = p.ledger.Inspect(ctx, lua.Cell{Activity: a.ID}); err == nil && !s.Opened {
			return false
		}
	}
	return err == nil || ctx.Err() != nil
}

// openServeKeys makes the secrets that a configuration does not give, in the data folder.
func (p *parts) openServeKeys() (err error) {
	if p.cfg.Internal.Key == "" {
		if p.cfg.Internal.Key, err = p.madeKey("internal.key"); err != nil {
			return err
		}
	}
	if p.cfg.Auth.Key == "" && p.cfg.Auth.Alg == "HS256" {
		if p.cfg.Auth.Key, err = p.madeKey("auth.key"); err != nil {
			return err
		}
	}
	return p.openKeys()
}

// openServeRedis takes the configured Redis, or starts the one inside on a free loopback port behind a password of its own.
func (p *parts) openServeRedis(ctx context.Context) error {
	if len(p.cfg.Redis.Addrs) > 0 {
		return p.openRedis(ctx)
	}
	m := miniredis.NewMiniRedis()
	password := secret()
	m.RequireAuth(password)
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return fmt.Errorf("cannot start the Redis inside: %w", err)
	}
	p.onClose(m.Close)
	// Time does not pass by itself for its keys' expiry.
	ticking, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for t := time.NewTicker(time.Second); ; {
			select {
			case <-ticking.Done():
				t.Stop()
				return
			case <-t.C:
				m.FastForward(time.Second)
			}
		}
	}()
	p.onClose(func() { stop(); <-stopped })
	p.rdb = redis.NewClient(&redis.Options{Addr: m.Addr(), Password: password, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 32,
		ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second})
	p.onClose(func() { _ = p.rdb.Close() })
	p.embedded = true
	p.ledger = lua.New(p.rdb, lua.Options{Embedded: true})
	return p.ledger.Load(ctx)
}

// introduce tells the roles of this process about each other: the edge where the worker is, the page where the notifier is (unless
// that is the default port of the page's host), and both which origins are this machine's own, where none are configured.
func (p *parts) introduce(edge, notifier, worker net.Addr) {
	_, port, _ := net.SplitHostPort(notifier.String())
	if p.cfg.Notifier.PublicURL == "" && port != "8081" {
		p.cfg.Notifier.PublicURL = "ws://127.0.0.1:" + port + "/ws"
	}
	p.cfg.Edge.Workers = []string{"http://" + worker.String()}
	if len(p.cfg.Edge.AllowedOrigins) == 0 {
		_, port, _ := net.SplitHostPort(edge.String())
		p.cfg.Edge.AllowedOrigins = ownOrigins(port)
	}
}

// demoTitle is how a later start finds the demo's own activity among the operators'.
const demoTitle = "秒杀演示 · Flash sale demo"

// openDemo makes an activity to try things out where the last one has ended: three items, one with little stock, opening
// in 10 s for an hour. Operators' activities beside it change nothing.
func (p *parts) openDemo(ctx context.Context) error {
	recent, err := p.store.Activities(ctx, 0, 100)
	if err != nil {
		return err
	}
	now := sale.At(time.Now())
	if slices.ContainsFunc(recent, func(a sql.Activity) bool {
		return a.Title == demoTitle && a.EndsAt > now && a.Status != sale.Ended
	}) {
		return nil
	}
	_, err = p.store.CreateActivity(ctx, sale.Activity{
		Title: demoTitle, StartsAt: now + 10_000, EndsAt: now + 3_610_000, PerUserLimit: 1, PayWindow: 15 * time.Minute,
		Items: []sale.Item{
			{Commodity: 1001, Title: "无线耳机 · Wireless earphones", Price: 9900, Total: 100},
			{Commodity: 1002, Title: "机械键盘 · Mechanical keyboard", Price: 19999, Total: 1000},
			{Commodity: 1003, Title: "限量手办 · Limited figure", Price: 100, Total: 3},
		},
	})
	return err
}

// banner tells a person where to go and what this is.
func (p *parts) banner(edge net.Addr) {
	_, port, _ := net.SplitHostPort(edge.String())
	fmt.Fprintf(os.Stdout, "\n  Floodgate is open:  http://127.0.0.1:%s/\n  Operator token:     %s\n", port, filepath.Join(p.cfg.Data.Dir, operatorToken))
	if p.embedded {
		fmt.Fprint(os.Stdout, "  Redis lives inside this process and is rebuilt from the database at each start: for trying out and small shops,\n"+
			"  one machine, a few hundred orders a second. For a real sale use Redis, RocketMQ and MySQL (README, make run-stack).\n")
	}
	fmt.Fprintln(os.Stdout)
}

// ownOrigins are the origins under which a browser on this machine or its network sees an edge on this port.
func ownOrigins(port string) []string {
	hosts := []string{"localhost", "127.0.0.1"}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, strings.ToLower(name))
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !slices.Contains(hosts, ip.IP.String()) {
			hosts = append(hosts, ip.IP.String())
		}
	}
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = "http://" + h + ":" + port
	}
	return out
}
