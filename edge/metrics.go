package edge

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"floodgate/sale"
)

// metrics is what the edge counts. Requests in equal the sum of verdicts, save for those in flight.
type metrics struct {
	edge     *Edge
	arrived  atomic.Uint64
	inFlight atomic.Int64

	latency        prometheus.Histogram
	reserveBatch   prometheus.Histogram
	sendBatch      prometheus.Histogram
	unanswered     prometheus.Counter
	unacknowledged prometheus.Counter
	notesLost      prometheus.Counter
	missing        prometheus.Gauge

	requests, verdicts, flying, soldOut, waiting, room *prometheus.Desc

	failures chan error // at most one a second is logged
	muted    atomic.Int64
}

func newMetrics(e *Edge) *metrics {
	batch := prometheus.ExponentialBuckets(1, 2, 9) // 1..256
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &metrics{
		edge:           e,
		latency:        histogram("floodgate_edge_accepted_seconds", "From a request to its accepted.", prometheus.ExponentialBuckets(0.0005, 2, 14)),
		reserveBatch:   histogram("floodgate_edge_reserve_batch_requests", "Requests that shared a reserve call.", batch),
		sendBatch:      histogram("floodgate_edge_send_batch_messages", "Messages that shared a send.", batch),
		unanswered:     counter("floodgate_edge_reserve_unanswered_total", "Tries of a reserve call without an answer."),
		unacknowledged: counter("floodgate_edge_send_unacknowledged_total", "Messages accepted on their reservation alone."),
		notesLost:      counter("floodgate_edge_notes_lost_total", "Batches that the sweep looks at early, since the ledger was not told that the queue has them."),
		missing: prometheus.NewGauge(prometheus.GaugeOpts{Name: "floodgate_edge_missing_activities",
			Help: "Activities that are not ended and have vanished from Redis."}),
		requests: desc("floodgate_edge_requests_total", "Requests that arrived."),
		verdicts: desc("floodgate_edge_verdicts_total", "Answers by the gate that gave them.", "gate", "verdict"),
		flying:   desc("floodgate_edge_requests_in_flight", "Requests being answered."),
		soldOut:  desc("floodgate_edge_sold_out_items", "Items that are refused from memory as sold out."),
		waiting:  desc("floodgate_edge_waiting_requests", "Requests that wait for their batch.", "line"),
		room:     desc("floodgate_edge_waiting_capacity", "Requests that may wait in one line.", "line"),
		failures: make(chan error, 1),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m, m.latency, m.reserveBatch, m.sendBatch, m.unanswered, m.unacknowledged, m.notesLost, m.missing} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// Describe implements [prometheus.Collector].
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.requests, m.verdicts, m.flying, m.soldOut, m.waiting, m.room} {
		out <- d
	}
}

// Collect implements [prometheus.Collector]. Verdicts are counted in plain atomics, because a refusal may cost no lookup.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(m.requests, prometheus.CounterValue, float64(m.arrived.Load()))
	out <- prometheus.MustNewConstMetric(m.flying, prometheus.GaugeValue, float64(m.inFlight.Load()))
	m.each(func(g gate, a *answer, n uint64) {
		out <- prometheus.MustNewConstMetric(m.verdicts, prometheus.CounterValue, float64(n), gateNames[g], a.verdict.Label)
	})
	soldOut, reserving := 0, 0
	for _, i := range m.edge.catalog.current.Load().items {
		if m.edge.soldOut.has(i.till) {
			soldOut++
		}
		n, _ := i.till.line.load()
		reserving += n
	}
	sending, _ := m.edge.queue.load()
	out <- prometheus.MustNewConstMetric(m.soldOut, prometheus.GaugeValue, float64(soldOut))
	for line, n := range map[string]int{"reserve": reserving, "send": sending} {
		out <- prometheus.MustNewConstMetric(m.waiting, prometheus.GaugeValue, float64(n), line)
		out <- prometheus.MustNewConstMetric(m.room, prometheus.GaugeValue, float64(m.edge.cfg.Waiting), line)
	}
}

// each walks over the counters that are not zero.
func (m *metrics) each(visit func(gate, *answer, uint64)) {
	one := func(a *answer) {
		for g := range gates {
			if n := a.counts[g].Load(); n > 0 {
				visit(g, a, n)
			}
		}
	}
	one(&m.edge.answers.ok)
	for _, code := range sale.Codes() {
		one(m.edge.answers.byCode[code])
	}
}

// hear takes a failure that somebody must know of; at most one a second is logged, the others are counted with it.
func (m *metrics) hear(err error) {
	select {
	case m.failures <- err:
	default:
		m.muted.Add(1)
	}
}

// summarise logs one line a second about refusals and one about failures, when there were any, until ctx ends.
func (m *metrics) summarise(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	before := map[string]uint64{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case err := <-m.failures:
			log.Error("edge failure", "error", err.Error(), "muted", m.muted.Swap(0))
		default:
		}
		var fields []any
		m.each(func(g gate, a *answer, n uint64) {
			name := gateNames[g] + "." + a.verdict.Label
			if d := n - before[name]; d > 0 && a.verdict.HTTP >= 400 {
				fields = append(fields, slog.Uint64(name, d))
			}
			before[name] = n
		})
		if len(fields) > 0 {
			log.Info("refusals in a second", fields...)
		}
	}
}
