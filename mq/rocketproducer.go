package mq

import (
	"context"
	"fmt"
	"log/slog"

	"floodgate/sale"
)

// RocketProducer sends orders to RocketMQ. A batch is one request; whatever the broker does, Send answers within the send timeout.
type RocketProducer struct {
	cfg     Config
	metrics *metrics
	sender  *sender
}

var _ Producer = (*RocketProducer)(nil)

// NewRocketProducer returns at once, whether or not a name server answers: the route is sought in the background until Close.
func NewRocketProducer(cfg Config, _ *slog.Logger, opts ...Option) (*RocketProducer, error) {
	cfg.fill()
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m := newMetrics(apply(opts).registry, "rocketmq")
	s, err := newSender(cfg, cfg.Topic, cfg.SendTimeout, m)
	if err != nil {
		return nil, err
	}
	return &RocketProducer{cfg: cfg, metrics: m, sender: s}, nil
}

// Send stores the batch; see [Producer]. It answers within the send timeout, at once where the brokers are known to be down, and
// what was on its way then may still be stored.
func (p *RocketProducer) Send(ctx context.Context, batch []sale.Message) error {
	if err := checkBatch(batch); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.SendTimeout)
	defer cancel()
	if err := p.sender.store(ctx, pack(batch)); err != nil {
		p.metrics.unanswered.Add(float64(len(batch)))
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	p.metrics.sent.Add(float64(len(batch)))
	return nil
}

// Close ends all connections; what is being sent gets an error. It takes a second where a name server is silent.
func (p *RocketProducer) Close() error {
	p.sender.close()
	return nil
}
