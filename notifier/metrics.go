package notifier

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"floodgate/sale"
)

type metrics struct {
	open      atomic.Int64 // connections
	queued    atomic.Int64 // messages waiting in all queues
	refused   *prometheus.CounterVec
	closed    *prometheus.CounterVec
	pushed    *prometheus.CounterVec
	dropped   prometheus.Counter
	caughtUp  prometheus.Counter
	fill      prometheus.Histogram
	latency   prometheus.Histogram
	resubs    prometheus.Counter
	redisFail prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, cfg Config) (*metrics, error) {
	m := &metrics{
		refused:   counters("refused_total", "Connections refused before the upgrade.", "reason"),
		closed:    counters("closed_total", "Connections that we closed, by close code.", "code"),
		pushed:    counters("pushed_total", "Messages written to connections.", "type"),
		dropped:   counter("dropped_total", "Messages thrown away because their connection was too slow."),
		caughtUp:  counter("caught_up_total", "Outcomes that a push had missed and a later reading found."),
		resubs:    counter("subscriptions_total", "Times that the Pub/Sub subscription was made or made again."),
		redisFail: counter("redis_failures_total", "Readings of Redis that failed; they are tried again."),
		fill:      histogram("queue_fill", "Messages in a connection's queue when one is added.", prometheus.ExponentialBuckets(1, 2, 10)),
		latency:   histogram("push_latency_seconds", "From an outcome's time to when it was written to a connection.", prometheus.ExponentialBuckets(.001, 2, 14)),
	}
	all := []prometheus.Collector{
		m.refused, m.closed, m.pushed, m.dropped, m.caughtUp, m.resubs, m.redisFail, m.fill, m.latency,
		gauge("connections", "Open connections.", func() float64 { return float64(m.open.Load()) }),
		gauge("connections_capacity", "Most open connections.", func() float64 { return float64(cfg.MaxConnections) }),
		gauge("queue_messages", "Messages waiting in all queues.", func() float64 { return float64(m.queued.Load()) }),
		gauge("queue_capacity", "Most messages waiting in one connection's queue.", func() float64 { return float64(cfg.Queue) }),
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// written counts a frame; clocks of two machines may make a latency negative, which counts as none.
func (m *metrics) written(f *message) {
	m.pushed.WithLabelValues(f.kind).Inc()
	if f.at > 0 {
		m.latency.Observe(max(0, time.Since(f.at.Time()).Seconds()))
	}
}

func (m *metrics) said(c closing) { m.closed.WithLabelValues(strconv.Itoa(c.code)).Inc() }

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "floodgate", Subsystem: "notifier", Name: name, Help: help})
}

func counters(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "floodgate", Subsystem: "notifier", Name: name, Help: help}, []string{label})
}

func gauge(name, help string, f func() float64) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "floodgate", Subsystem: "notifier", Name: name, Help: help}, f)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "floodgate", Subsystem: "notifier", Name: name, Help: help, Buckets: buckets})
}

// now is this process's clock, for what buyers are told and for the ages of our own queues.
func now() sale.Millis { return sale.At(time.Now()) }
