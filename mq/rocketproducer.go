package mq

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"floodgate/sale"
)

// routeAge is how old a producer's route gets: a queue or broker that was added is used after so long.
const routeAge = 5 * time.Second

// RocketProducer sends orders to RocketMQ. A batch is one request; whatever the broker does, Send answers within the send timeout.
type RocketProducer struct {
	cfg     Config
	logger  *slog.Logger
	metrics *metrics
	sender  *sender
	asked   chan struct{} // closed when the first look for the route has ended, well or not
	stop    context.CancelFunc
	owned   sync.WaitGroup
}

var _ Producer = (*RocketProducer)(nil)

// NewRocketProducer returns at once, whether or not a name server answers: the route is sought in the background until Close.
func NewRocketProducer(cfg Config, logger *slog.Logger, opts ...Option) (*RocketProducer, error) {
	cfg.fill()
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m := newMetrics(apply(opts).registry, "rocketmq")
	p := &RocketProducer{cfg: cfg, logger: logger, metrics: m, asked: make(chan struct{}),
		sender: &sender{cluster: newCluster(cfg), topic: cfg.Topic, probe: cfg.Probe, metrics: m}}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.owned.Go(func() { p.keepRoute(ctx) })
	return p, nil
}

// keepRoute refreshes the route until Close.
func (p *RocketProducer) keepRoute(ctx context.Context) {
	for first := true; ctx.Err() == nil; first = false {
		pause := routeAge
		if err := p.sender.refresh(ctx); err != nil {
			pause = p.cfg.Probe
			if first && ctx.Err() == nil {
				p.logger.Warn("the queue is not found yet; purchases are accepted on their reservations", "topic", p.cfg.Topic, "error", err)
			}
		}
		if first {
			close(p.asked)
		}
		rest(ctx, pause)
	}
}

// Send stores the batch; see [Producer]. It answers within the send timeout, at once where the brokers are known to be down, and
// what was on its way then may still be stored.
func (p *RocketProducer) Send(ctx context.Context, batch []sale.Message) error {
	if err := checkBatch(batch); err != nil {
		return err
	}
	entries := make([]entry, len(batch))
	for i := range batch {
		entries[i] = entry{body: batch[i].Append(make([]byte, 0, sale.MaxMessage)), key: string(batch[i].Token)}
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.SendTimeout)
	defer cancel()
	if err := p.send(ctx, entries); err != nil {
		p.metrics.unanswered.Add(float64(len(batch)))
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	p.metrics.sent.Add(float64(len(batch)))
	return nil
}

func (p *RocketProducer) send(ctx context.Context, entries []entry) error {
	select {
	case <-p.asked:
	case <-ctx.Done():
		return errNoRoute
	}
	return p.sender.store(ctx, entries)
}

// Close ends all connections; what is being sent gets an error.
func (p *RocketProducer) Close() error {
	p.stop()
	p.sender.cluster.close()
	p.owned.Wait()
	return nil
}
