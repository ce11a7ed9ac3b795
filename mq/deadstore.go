package mq

import (
	"context"
	"time"
)

// letterTime bounds the storing of a dead letter: nobody waits for it but an operator, or a queue that cannot go on without it.
const letterTime = 3 * time.Second

// deadStore stores dead letters and what is replayed from them.
type deadStore struct {
	sender *sender
	orders string // topics
	dead   string
}

func newDeadStore(cfg Config) *deadStore {
	cfg.SendTimeout = letterTime
	// Its breaker is not the one of the way that buyers wait for.
	return &deadStore{sender: newSender(cfg, newMetrics(nil, "rocketmq")), orders: cfg.Topic, dead: cfg.Topic + deadSuffix}
}

// put returns nil when the broker has the letters on disk; after an error they may be there.
func (d *deadStore) put(ctx context.Context, topic string, batch []entry) error {
	ctx, cancel := context.WithTimeout(ctx, letterTime)
	defer cancel()
	return d.sender.store(ctx, topic, batch)
}
