package notifier

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Config is the section notifier of the configuration.
type Config struct {
	Listen           string        `config:"listen" default:":8081" help:"address of the WebSockets; port 0 takes a free one"`
	AllowedOrigins   []string      `config:"allowed_origins" help:"origins whose pages may connect, exactly as browsers send them (https://shop.example); empty: those of edge.allowed_origins"`
	PublicURL        string        `config:"public_url" help:"where pages reach the WebSockets (wss://push.shop.example/ws); empty: the page's host with this port"`
	MaxConnections   int           `config:"max_connections" default:"20000" help:"connections at once, at 10 KiB each; more are refused with 503 (1 to 1000000)"`
	MaxPerUser       int           `config:"max_per_user" default:"8" help:"connections of one user; more are closed with 4009 (1 to 1000)"`
	MaxWatches       int           `config:"max_watches" default:"64" help:"unfinished request tokens that one connection may watch (1 to 10000)"`
	MaxSubscriptions int           `config:"max_subscriptions" default:"16" help:"activities whose stock one connection may follow (1 to 1000)"`
	Queue            int           `config:"queue" default:"256" help:"messages that may wait for one connection; one more closes it with 4008 (1 to 100000)"`
	RestartSpread    time.Duration `config:"restart_spread" default:"5s" help:"at a stop clients are told to come back after a random time up to this (0s to 5m)"`
}

// Check names every setting that cannot be used, joined.
func (c *Config) Check() error {
	var faults []error
	want := func(ok bool, key, problem string) {
		if !ok {
			faults = append(faults, fmt.Errorf("notifier.%s: %s", key, problem))
		}
	}
	within := func(key string, v, high int) {
		want(v >= 1 && v <= high, key, fmt.Sprintf("is %d, want 1 to %d", v, high))
	}
	within("max_connections", c.MaxConnections, 1_000_000)
	within("max_per_user", c.MaxPerUser, 1000)
	within("max_watches", c.MaxWatches, 10_000)
	within("max_subscriptions", c.MaxSubscriptions, 1000)
	within("queue", c.Queue, 100_000)
	want(c.RestartSpread >= 0 && c.RestartSpread <= 5*time.Minute, "restart_spread", fmt.Sprintf("is %s, want 0s to 5m", c.RestartSpread))
	for _, o := range c.AllowedOrigins {
		want(isOrigin(o), "allowed_origins", fmt.Sprintf("%q is no origin, want scheme://host[:port] and nothing behind it", o))
	}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		ok := err == nil && u.Host != "" && slices.Contains([]string{"ws", "wss", "http", "https"}, u.Scheme)
		want(ok, "public_url", fmt.Sprintf("is %q, want ws:// or wss:// and a host", c.PublicURL))
	}
	return errors.Join(faults...)
}

// isOrigin says that a text is an origin as browsers send it. "null" is none: every sandboxed page has it.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && u.Host != "" && text == strings.ToLower(u.Scheme+"://"+u.Host)
}
