package mq

import (
	"context"
	"sync"
	"time"
)

// letterTime bounds the storing of a dead letter: nobody waits for it but an operator, or a queue that cannot go on without it.
const letterTime = 3 * time.Second

// deadStore stores dead letters and what is replayed from them: rare, so each call finds its way anew.
type deadStore struct {
	letters *sender
	orders  *sender
	mu      sync.Mutex // one refresh at a time
}

func newDeadStore(cfg Config, c *cluster) *deadStore {
	m := newMetrics(nil, "rocketmq") // its breakers are not those of the way that buyers wait for
	to := func(topic string) *sender { return &sender{cluster: c, topic: topic, probe: cfg.Probe, metrics: m} }
	return &deadStore{letters: to(cfg.Topic + deadSuffix), orders: to(cfg.Topic)}
}

// put returns nil when the broker has the letters on disk; after an error they may be there.
func (d *deadStore) put(ctx context.Context, to *sender, batch []entry) error {
	ctx, cancel := context.WithTimeout(ctx, letterTime)
	defer cancel()
	if err := d.refresh(ctx, to); err != nil {
		return err
	}
	return to.store(ctx, batch)
}

func (d *deadStore) refresh(ctx context.Context, s *sender) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.refresh(ctx)
}
