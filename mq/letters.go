package mq

import (
	"context"
	"sync"
	"time"
)

// letterTime bounds the storing of a dead letter: nobody waits for it but an operator, or a queue that cannot go on without it.
const letterTime = 3 * time.Second

// letters stores dead letters and what is replayed from them: rare, so each call finds its way anew.
type letters struct {
	dead   *sender
	orders *sender
	mu     sync.Mutex // one refresh at a time
}

func newLetters(cfg Config, c *cluster) *letters {
	m := newMetrics(nil, "rocketmq") // its breakers are not those of the way that buyers wait for
	to := func(topic string) *sender { return &sender{cluster: c, topic: topic, probe: cfg.Probe, metrics: m} }
	return &letters{dead: to(cfg.Topic + deadSuffix), orders: to(cfg.Topic)}
}

// put returns nil when the broker has the letters on disk; after an error they may be there.
func (l *letters) put(ctx context.Context, to *sender, batch []letter) error {
	ctx, cancel := context.WithTimeout(ctx, letterTime)
	defer cancel()
	if err := l.refresh(ctx, to); err != nil {
		return err
	}
	return to.store(ctx, batch)
}

func (l *letters) refresh(ctx context.Context, s *sender) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.refresh(ctx)
}
