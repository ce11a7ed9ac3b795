package worker

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"floodgate/sale"
)

type metrics struct {
	placedTotal *prometheus.CounterVec
	swept       prometheus.Counter
	shelved     prometheus.Counter
	batch       prometheus.Histogram
	recoveries  prometheus.Counter
	keepFailed  prometheus.Counter
	lost        prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	f := promauto.With(r)
	return &metrics{
		placedTotal: f.NewCounterVec(prometheus.CounterOpts{Name: "floodgate_worker_placed_total", Help: "Rows inserted, by outcome and source."}, []string{"outcome", "source"}),
		swept:       f.NewCounter(prometheus.CounterOpts{Name: "floodgate_worker_swept_total", Help: "Reservations that the sweep found due."}),
		shelved:     f.NewCounter(prometheus.CounterOpts{Name: "floodgate_worker_shelved_total", Help: "Messages put on the shelf because their stock was not proven."}),
		batch: f.NewHistogram(prometheus.HistogramOpts{Name: "floodgate_worker_place_batch_size", Help: "Claims of one placing.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 9)}),
		recoveries: f.NewCounter(prometheus.CounterOpts{Name: "floodgate_worker_recoveries_total", Help: "Times this worker has proven the stock of Redis."}),
		keepFailed: f.NewCounter(prometheus.CounterOpts{Name: "floodgate_worker_keep_failures_total", Help: "Turns in which Redis or the database could not be read."}),
		lost:       f.NewGauge(prometheus.GaugeOpts{Name: "floodgate_worker_lost_activities", Help: "Activities whose stock Redis has lost: nothing of them is sold."}),
	}
}

var sources = [...]string{sale.FromQueue: "queue", sale.FromSweep: "sweep", sale.FromFallback: "fallback"}

func (m *metrics) placed(orders []sale.Order) {
	for _, o := range orders {
		m.placedTotal.WithLabelValues(string(o.State.Outcome()), sources[o.Source]).Inc()
	}
}
