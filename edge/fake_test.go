package edge

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"floodgate/lua"
	"floodgate/sale"
)

// backlog is a queue in memory that can be told to fail.
type backlog struct {
	mu       sync.Mutex
	messages []sale.Message
	sends    int
	fail     func(batch []sale.Message) error // nil: works; called without mu
}

func (b *backlog) Send(_ context.Context, batch []sale.Message) error {
	b.mu.Lock()
	fail := b.fail
	b.mu.Unlock()
	if fail != nil {
		if err := fail(batch); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sends++
	b.messages = append(b.messages, batch...)
	return nil
}

func (b *backlog) failWith(f func([]sale.Message) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = f
}

func (b *backlog) all() []sale.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]sale.Message(nil), b.messages...)
}

// own lets an edge on the shared Redis see the activities of its own test only.
type own struct {
	*lua.Ledger
	client *redis.Client
	mu     sync.Mutex
	ids    []sale.ID
}

func (o *own) rdb() *redis.Client { return o.client }

func (o *own) Activities(ctx context.Context) ([]sale.ID, error) {
	all, err := o.Ledger.Activities(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	var mine []sale.ID
	for _, id := range o.ids {
		for _, a := range all {
			if a == id {
				mine = append(mine, id)
			}
		}
	}
	return mine, err
}
