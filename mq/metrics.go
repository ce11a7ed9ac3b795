package mq

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of one driver; they count whether or not they are registered.
type metrics struct {
	sent        prometheus.Counter // messages that the queue acknowledged
	unanswered  prometheus.Counter // messages whose fate is unknown
	consumed    prometheus.Counter // messages whose batch was acknowledged
	redelivered prometheus.Counter // batches offered again after an error or a panic
	dead        prometheus.Counter // messages put among the dead letters
	breaker     prometheus.Gauge   // 0 closed, 1 half open, 2 open
	inFlight    prometheus.Gauge   // batches in handlers now; the capacity is the number of queues
}

func newMetrics(r prometheus.Registerer, driver string) *metrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "floodgate", Subsystem: "mq", Name: name, Help: help, ConstLabels: prometheus.Labels{"driver": driver}}
	}
	count := func(name, help string) prometheus.Counter {
		return register(r, prometheus.NewCounter(prometheus.CounterOpts(opts(name, help))))
	}
	gauge := func(name, help string) prometheus.Gauge {
		return register(r, prometheus.NewGauge(prometheus.GaugeOpts(opts(name, help))))
	}
	return &metrics{
		sent:        count("sent_total", "Order messages that the queue acknowledged."),
		unanswered:  count("unanswered_total", "Order messages that were not acknowledged in time or not sent to a queue known to be down."),
		consumed:    count("consumed_total", "Order messages whose batch was acknowledged."),
		redelivered: count("redelivered_total", "Batches offered again in place after an error or a panic."),
		dead:        count("dead_total", "Messages put among the dead letters."),
		breaker:     gauge("breaker_state", "Whether sends are tried: 0 closed (yes), 1 half open (one), 2 open (no)."),
		inFlight:    gauge("handling_batches", "Batches that are being placed; at most one a queue."),
	}
}

// register gives the collector that counts: the one registered before under the same name, or this one.
func register[C prometheus.Collector](r prometheus.Registerer, c C) C {
	if r == nil {
		return c
	}
	err := r.Register(c)
	if before, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return before.ExistingCollector.(C)
	}
	if err != nil {
		panic("mq: " + err.Error()) // two metrics of one name and different labels: a bug
	}
	return c
}
