package mq

import (
	"context"
	"sync"
	"time"
)

// letterTime bounds the storing of a dead letter: nobody waits for it but an operator, or a queue that cannot go on without it.
const letterTime = 3 * time.Second

// deadStore stores dead letters and what is replayed from them: rare, so each way is made when it is first needed. Safe for concurrent use.
type deadStore struct {
	cfg     Config
	metrics *metrics // its breakers are not those of the way that buyers wait for

	mu   sync.Mutex // guards what follows
	ways map[string]*sender
}

func newDeadStore(cfg Config) *deadStore {
	return &deadStore{cfg: cfg, metrics: newMetrics(nil, "rocketmq"), ways: map[string]*sender{}}
}

// letter puts entries among the dead letters, order among the orders. nil means that the broker has them on disk; after an error
// they may be there.
func (d *deadStore) letter(ctx context.Context, batch ...entry) error {
	return d.put(ctx, d.cfg.Topic+deadSuffix, batch)
}
func (d *deadStore) order(ctx context.Context, batch ...entry) error {
	return d.put(ctx, d.cfg.Topic, batch)
}

func (d *deadStore) put(ctx context.Context, topic string, batch []entry) error {
	way, err := d.way(topic)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, letterTime)
	defer cancel()
	return way.store(ctx, batch)
}

func (d *deadStore) way(topic string) (*sender, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.ways[topic]; s != nil {
		return s, nil
	}
	s, err := newSender(d.cfg, topic, letterTime, d.metrics)
	if err != nil {
		return nil, err
	}
	d.ways[topic] = s
	return s, nil
}

// close ends all connections. Nothing is put afterwards.
func (d *deadStore) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for topic, s := range d.ways {
		delete(d.ways, topic)
		s.close()
	}
}
