package main

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"floodgate/sale"
	"floodgate/sql"
)

// The demo's activity is made again only when the last one has ended, whatever operators make beside it.
func TestDemoActivity(t *testing.T) {
	t.Parallel()
	store, err := sql.Open(t.Context(), sql.Config{Driver: sql.SQLite, DSN: filepath.Join(t.TempDir(), "demo.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if _, err := store.Migrate(t.Context(), "up"); err != nil {
		t.Fatal(err)
	}
	p := &parts{store: store, log: slog.New(slog.DiscardHandler)}
	count := func(what string, want int) (newest sale.ID) {
		t.Helper()
		if err := p.openDemo(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, err := store.Activities(t.Context(), 0, 100)
		if err != nil || len(all) != want {
			t.Fatalf("%s: %d activities (%v), want %d", what, len(all), err, want)
		}
		return all[0].ID
	}
	other := func(title string, ends time.Duration) sale.ID {
		t.Helper()
		now := sale.At(time.Now())
		id, err := store.CreateActivity(t.Context(), sale.Activity{Title: title, StartsAt: now - 7_200_000, EndsAt: now + sale.Millis(ends.Milliseconds()),
			PerUserLimit: 1, PayWindow: time.Minute, Items: []sale.Item{{Commodity: 1, Title: "thing", Price: 100, Total: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	demo := count("first start", 1)
	count("second start", 1)
	own := other("an operator's", time.Hour)
	if _, err := store.SetStatus(t.Context(), own, sale.Ended); err != nil {
		t.Fatal(err)
	}
	count("an operator's has ended, the demo runs", 2)
	if _, err := store.SetStatus(t.Context(), demo, sale.Ended); err != nil {
		t.Fatal(err)
	}
	other("an operator's next", time.Hour)
	count("the demo has ended, an operator's runs", 4)
}

// What a role would refuse at its start, every command refuses: `config check` tells all of it.
func TestConfigCheckAsksEveryPart(t *testing.T) {
	t.Parallel()
	for pair, want := range map[string]string{
		"edge.token_ttl=-1s":             "edge.token_ttl: is -1s, want 1s to 1h",
		"edge.workers=a b":               "edge.workers",
		"worker.placers=0":               "worker.placers: want 1 to 16",
		"notifier.queue=0":               "notifier.queue: is 0, want 1 to 100000",
		"notifier.public_url=foo":        "notifier.public_url",
		"console.apply_wait=-1s":         "console.apply_wait",
		"mq.driver=kafka":                "mq.driver",
		"db.driver=pg":                   `db.driver: "pg" is not mysql or sqlite`,
		"db.max_open=0":                  "db.max_open",
		"auth.alg=none":                  `auth.alg is "none"`,
		"auth.key=short":                 "auth.key has 5 bytes",
		"internal.key=short":             "internal.key",
		"edge.allowed_origins=shop.test": "edge.allowed_origins",
	} {
		if _, err := load(nil, "", nil, []string{pair}); err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != 2 {
			t.Errorf("%s: %v, want exit 2 and %q", pair, err, want)
		}
	}
	if _, err := load(nil, "", nil, []string{"edge.workers=127.0.0.1:8091,worker-2:8092"}); err != nil {
		t.Errorf("host:port will do: %v", err)
	}
}
