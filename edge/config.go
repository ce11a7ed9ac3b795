package edge

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Config is the section edge of the configuration.
type Config struct {
	Listen         string        `config:"listen" default:":8080" help:"address of the buyers' HTTP; port 0 takes a free one"`
	AllowedOrigins []string      `config:"allowed_origins" help:"origins whose pages may use the cookie fg_session, exactly as browsers send them (https://shop.example)"`
	TrustedProxies []string      `config:"trusted_proxies" help:"addresses or CIDRs of proxies whose X-Forwarded-For is believed"`
	Workers        []string      `config:"workers" default:"http://127.0.0.1:8082" help:"the workers' order API, one URL each"`
	TokenTTL       time.Duration `config:"token_ttl" default:"10m" help:"how long a request token may wait for its first use (1s to 1h)"`
	ReserveTimeout time.Duration `config:"reserve_timeout" default:"300ms" help:"how long one try of a reserve call waits for Redis (10ms to 2s); three tries, then busy"`
	SendTimeout    time.Duration `config:"send_timeout" default:"5s" help:"the most that one send may take whatever the queue's driver does (100ms to 10s)"`
	WorkerTimeout  time.Duration `config:"worker_timeout" default:"1s" help:"how long one worker may take to answer about orders (50ms to 10s)"`
	Waiting        int           `config:"waiting" default:"8192" help:"requests that may wait for one item's next reserve call, or for the next send; more are busy (1 to 1000000)"`
	ReadTimeout    time.Duration `config:"read_timeout" default:"5s" help:"a request must have arrived whole within this (100ms to 1m)"`
	WriteTimeout   time.Duration `config:"write_timeout" default:"5s" help:"an answer must have left within this (100ms to 1m)"`
	IdleTimeout    time.Duration `config:"idle_timeout" default:"60s" help:"a connection without a request is closed after this (1s to 1h)"`
	Connections    int           `config:"connections" default:"65536" help:"connections served at once; more are refused (1 to 1000000)"`
	SaveMemory     bool          `config:"save_memory" default:"true" help:"give a connection's buffers back between its requests: a third of the memory of an idle connection, for 2 % of the refusals a second"`
	Single         bool          `config:"single" default:"false" help:"for measuring only: every purchase is a reserve call and a send of its own"`
}

// Check names every setting that cannot be used, joined.
func (c *Config) Check() error {
	_, err := c.check()
	return err
}

// check refuses what cannot be served with, all faults joined, and gives the trusted proxies read.
func (c *Config) check() ([]netip.Prefix, error) {
	var faults []error
	want := func(ok bool, key, problem string) {
		if !ok {
			faults = append(faults, fmt.Errorf("edge.%s: %s", key, problem))
		}
	}
	within := func(key string, v, low, high time.Duration) {
		want(v >= low && v <= high, key, fmt.Sprintf("is %s, want %s to %s", v, low, high))
	}
	within("token_ttl", c.TokenTTL, time.Second, time.Hour)
	within("reserve_timeout", c.ReserveTimeout, 10*time.Millisecond, 2*time.Second)
	within("send_timeout", c.SendTimeout, 100*time.Millisecond, 10*time.Second)
	within("worker_timeout", c.WorkerTimeout, 50*time.Millisecond, 10*time.Second)
	within("read_timeout", c.ReadTimeout, 100*time.Millisecond, time.Minute)
	within("write_timeout", c.WriteTimeout, 100*time.Millisecond, time.Minute)
	within("idle_timeout", c.IdleTimeout, time.Second, time.Hour)
	want(c.Waiting >= 1 && c.Waiting <= 1_000_000, "waiting", "want 1 to 1000000")
	want(c.Connections >= 1 && c.Connections <= 1_000_000, "connections", "want 1 to 1000000")
	for _, o := range c.AllowedOrigins {
		want(isOrigin(o), "allowed_origins", fmt.Sprintf("%q is no origin, want scheme://host[:port] and nothing behind it", o))
	}
	for _, w := range c.Workers {
		want(isOrigin(w), "workers", fmt.Sprintf("%q is no address of a worker, want http://host:port", w))
	}
	var proxies []netip.Prefix
	for _, p := range c.TrustedProxies {
		prefix, err := parseProxy(p)
		want(err == nil, "trusted_proxies", fmt.Sprintf("%q is neither an address nor a CIDR", p))
		proxies = append(proxies, prefix)
	}
	return proxies, errors.Join(faults...)
}

func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && text == u.Scheme+"://"+u.Host
}

func parseProxy(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}
