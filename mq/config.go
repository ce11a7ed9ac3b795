package mq

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is the section mq of the configuration. Everything but Driver concerns rocketmq only.
type Config struct {
	Driver       string        `config:"driver" default:"table" help:"order queue: table (the embedded SQLite file) or rocketmq"`
	NameServers  []string      `config:"nameservers" help:"RocketMQ name servers, host:port each; any of them is enough"`
	Topic        string        `config:"topic" default:"floodgate_orders" help:"topic of the orders; dead letters go to the same name with _dead behind it; both must exist"`
	Group        string        `config:"group" default:"floodgate_workers" help:"consumer group that all workers share"`
	SendTimeout  time.Duration `config:"send_timeout" default:"200ms" help:"how long a purchase waits for the queue before it is accepted on its reservation alone (10ms to 5s)"`
	ConsumeBatch int           `config:"consume_batch" default:"256" help:"most messages a worker takes from one queue at once (1 to 1024); the broker hands out 32 unless its maxTransferCountOnMessageInMemory is raised"`
	Probe        time.Duration `config:"probe" default:"500ms" help:"how often a queue that does not answer is tried again (50ms to 2s)"`
}

const (
	// deadSuffix makes the dead-letter topic's name.
	deadSuffix = "_dead"

	defaultSendTimeout  = 200 * time.Millisecond // a buyer's patience; a healthy SYNC_FLUSH batch takes 1-10 ms
	defaultConsumeBatch = 256                    // what one multi-row insert takes comfortably, see MaxSend
	defaultProbe        = 500 * time.Millisecond // a returned queue is used again well within 5 s, at two tries a second
)

// topicName is what a broker accepts, short enough that "%RETRY%" or "_dead" still fits into 127.
var topicName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// fill puts the defaults where nothing is set.
func (c *Config) fill() {
	if c.Topic == "" {
		c.Topic = "floodgate_orders"
	}
	if c.Group == "" {
		c.Group = "floodgate_workers"
	}
	if c.SendTimeout == 0 {
		c.SendTimeout = defaultSendTimeout
	}
	if c.ConsumeBatch == 0 {
		c.ConsumeBatch = defaultConsumeBatch
	}
	if c.Probe == 0 {
		c.Probe = defaultProbe
	}
}

// Check names every setting that cannot be used, joined.
func (c Config) Check() error {
	c.fill()
	var faults []error
	want := func(ok bool, key, problem string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("mq."+key+": "+problem, args...))
		}
	}
	want(c.Driver == "table" || c.Driver == "rocketmq", "driver", "%q is unknown: want table or rocketmq", c.Driver)
	if c.Driver != "rocketmq" {
		return errors.Join(faults...)
	}
	want(len(c.NameServers) > 0, "nameservers", "missing: want host:port of at least one name server")
	for _, addr := range c.NameServers {
		_, _, err := net.SplitHostPort(addr)
		want(err == nil, "nameservers", "%q: want host:port", addr)
	}
	want(topicName.MatchString(c.Topic), "topic", "%q: want 1 to 100 of A-Z a-z 0-9 _ -", c.Topic)
	want(topicName.MatchString(c.Group), "group", "%q: want 1 to 100 of A-Z a-z 0-9 _ -", c.Group)
	want(c.SendTimeout >= 10*time.Millisecond && c.SendTimeout <= 5*time.Second, "send_timeout", "%v: want 10ms to 5s", c.SendTimeout)
	want(c.ConsumeBatch >= 1 && c.ConsumeBatch <= 1024, "consume_batch", "%d: want 1 to 1024", c.ConsumeBatch)
	want(c.Probe >= 50*time.Millisecond && c.Probe <= 2*time.Second, "probe", "%v: want 50ms to 2s", c.Probe)
	return errors.Join(faults...)
}

// Option changes how a part of the queue is built.
type Option func(*options)

type options struct {
	registry prometheus.Registerer
	logger   *slog.Logger
}

// WithMetrics counts on this registry. Several parts of one process may share it.
func WithMetrics(r prometheus.Registerer) Option { return func(o *options) { o.registry = r } }

// WithLogger gives driver table its logger; rocketmq's constructors take one.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

func apply(opts []Option) options {
	o := options{logger: slog.New(slog.DiscardHandler)}
	for _, set := range opts {
		set(&o)
	}
	return o
}
