package notifier

import (
	"context"
	"maps"
	"sync"
	"time"

	"floodgate/lua"
	"floodgate/sale"
)

// newTopics is how many activities that were never read are read in one round: their numbers come from clients and may
// be invented, so they must not keep the others waiting.
const newTopics = 64

// board reads the stock of each subscribed activity once a round, for all its subscribers together. mu guards the
// topics and the `topics` of every connection; it is taken before a connection's own lock and never with hub.mu.
type board struct {
	n    *Notifier
	wake chan struct{}

	mu     sync.Mutex
	topics map[sale.ID]*topic
}

// topic is one activity with subscribers; it leaves with the last one.
type topic struct {
	members map[*conn]struct{}
	state   *lua.State // as last read; nil: never
	readAt  sale.Millis
	said    *message // encoded from state
	saidAt  sale.Millis
	next    time.Time // not read before: at most one change an activity and round
}

func newBoard(n *Notifier) *board {
	return &board{n: n, wake: make(chan struct{}, 1), topics: map[sale.ID]*topic{}}
}

// join subscribes a connection and tells it what is known; what is not is read at once. It refuses where the
// connection has too many subscriptions.
func (b *board) join(c *conn, activity sale.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, again := c.topics[activity]; !again && len(c.topics) >= b.n.cfg.MaxSubscriptions {
		return false
	}
	if c.topics == nil {
		c.topics = map[sale.ID]struct{}{}
	}
	c.topics[activity] = struct{}{}
	t := b.topics[activity]
	if t == nil {
		t = &topic{members: map[*conn]struct{}{}}
		b.topics[activity] = t
	}
	t.members[c] = struct{}{}
	if t.state == nil {
		signal(b.wake)
		return true
	}
	c.send(t.message(activity))
	return true
}

// message is the state as last read, encoded once a reading.
func (t *topic) message(activity sale.ID) *message {
	if t.said == nil || t.saidAt != t.readAt {
		t.said, t.saidAt = stockMessage(activity, t.state, t.readAt), t.readAt
	}
	return t.said
}

func (b *board) leave(c *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for activity := range c.topics {
		b.remove(c, activity)
	}
}

func (b *board) remove(c *conn, activity sale.ID) {
	delete(c.topics, activity)
	t := b.topics[activity]
	if delete(t.members, c); len(t.members) == 0 {
		delete(b.topics, activity)
	}
}

// run reads until ctx ends.
func (b *board) run(ctx context.Context) error {
	tick := time.NewTicker(b.n.times.stock)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-b.wake:
		}
		b.round(ctx)
	}
}

func (b *board) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, b.n.times.redis)
	defer cancel()
	for _, activity := range b.due() {
		state, err := b.n.deps.Ledger.Stock(ctx, lua.Cell{Activity: activity})
		if b.n.failed("cannot read stock", err) {
			return // the next round reads again
		}
		b.tell(activity, &state)
	}
}

// due is what may be read now: all known topics, then some of the new ones.
func (b *board) due() []sale.ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var known, fresh []sale.ID
	for activity, t := range b.topics {
		switch {
		case t.state == nil && len(fresh) < newTopics:
			fresh = append(fresh, activity)
		case t.state != nil && !time.Now().Before(t.next):
			known = append(known, activity)
		}
	}
	return append(known, fresh...)
}

// tell sends a reading to the subscribers where it is news.
func (b *board) tell(activity sale.ID, s *lua.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topics[activity]
	switch {
	case t == nil: // the last one left while we read
		return
	case !s.Opened && t.state == nil:
		b.unknown(activity, t)
		return
	case !s.Opened: // lost or cleaned up in mid-sale: what was said stands until it is known again
		return
	}
	old := t.state
	t.state, t.readAt, t.next = s, now(), time.Now().Add(b.n.times.stock)
	if old != nil && old.Epoch == s.Epoch && old.Version == s.Version && maps.Equal(old.Remaining, s.Remaining) {
		return
	}
	for c := range t.members {
		c.send(t.message(activity))
	}
}

// unknown ends the subscriptions to an activity that is not open in Redis, not yet or not any more.
func (b *board) unknown(activity sale.ID, t *topic) {
	m := errorMessage(refusal{Code: sale.NotFound, Activity: activity})
	for c := range t.members {
		c.send(m)
		b.remove(c, activity)
	}
}
