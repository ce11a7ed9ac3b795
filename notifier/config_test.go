package notifier

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	good := Config{AllowedOrigins: []string{"https://shop.test", "http://127.0.0.1:8080", "http://[::1]:8080"}, PublicURL: "wss://push.shop.test/ws",
		MaxConnections: 1, MaxPerUser: 1, MaxWatches: 1, MaxSubscriptions: 1, Queue: 1}
	if _, err := New(good, Deps{Registerer: prometheus.NewRegistry()}); err != nil {
		t.Error(err)
	}
	bad := func(want string, change func(*Config)) {
		t.Helper()
		cfg := good
		change(&cfg)
		if _, err := New(cfg, Deps{}); err == nil || !strings.Contains(err.Error(), "notifier."+want) {
			t.Errorf("got %v, want notifier.%s", err, want)
		}
	}
	for _, o := range []string{"https://shop.test/", "https://Shop.test", "shop.test", "null", "*", "", "https://", "https://shop.test?x", "https://u@shop.test"} {
		bad("allowed_origins", func(c *Config) { c.AllowedOrigins = []string{o} })
	}
	bad("public_url", func(c *Config) { c.PublicURL = "push.shop.test" })
	bad("max_connections: is 0", func(c *Config) { c.MaxConnections = 0 })
	bad("max_per_user", func(c *Config) { c.MaxPerUser = -1 })
	bad("max_watches", func(c *Config) { c.MaxWatches = 10_001 })
	bad("max_subscriptions", func(c *Config) { c.MaxSubscriptions = 0 })
	bad("queue", func(c *Config) { c.Queue = 0 })
	bad("restart_spread", func(c *Config) { c.RestartSpread = time.Hour })
}
