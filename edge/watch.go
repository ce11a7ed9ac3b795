package edge

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/lua"
	"floodgate/sale"
)

const (
	readEvery     = time.Second      // the backstop for whatever Pub/Sub loses
	readTimeout   = time.Second      // of one read about one activity
	staleAfter    = 5 * time.Second  // without a read this edge is not ready
	maxActivities = 1000             // read every second by every edge
	readFailures  = 3                // in a row: Redis does not answer
	stockRoom     = 1024             // messages that may wait while the state is read
	forgetAfter   = 10 * time.Minute // an ended activity that left Redis is forgotten this long after its end
)

var errStale = errors.New("the activities were not read from Redis within 5 s")

// run keeps the catalog fresh until ctx ends: it reads every second, on every (re)subscribe, because what was published
// while the subscription was away is lost, and when a message tells of something newer than it knows.
func (c *catalog) run(ctx context.Context) {
	sub := c.edge.deps.RDB.Subscribe(ctx, lua.StockChannel)
	defer sub.Close()
	heard := sub.ChannelWithSubscriptions(redis.WithChannelSize(stockRoom))
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.refresh(ctx)
		case <-c.soon:
			c.refresh(ctx)
		case m, on := <-heard:
			if !on {
				return
			}
			c.hear(m)
		}
	}
}

// hear takes one message of the stock channel.
func (c *catalog) hear(m any) {
	text, ok := m.(*redis.Message)
	if !ok { // a subscription came or came back
		c.readSoon()
		return
	}
	var change sale.StockChange
	if err := json.Unmarshal([]byte(text.Payload), &change); err != nil {
		c.edge.metrics.hear(errors.New("unreadable message on the stock channel: " + err.Error()))
		return
	}
	s := c.current.Load()
	known := s.activities[change.Activity]
	if i := s.items[itemKey{change.Activity, change.Commodity}]; i != nil {
		c.edge.soldOut.learn(i.till, change.Epoch, change.Version, change.Remaining)
	}
	if known == nil || known.epoch != change.Epoch || !known.selling {
		c.readSoon()
	}
}

func (c *catalog) readSoon() {
	select {
	case c.soon <- struct{}{}:
	default:
	}
}

// refresh reads everything and swaps the snapshot. Where Redis does not answer the old one stands: purchases are then
// refused by the reserve call itself.
func (c *catalog) refresh(ctx context.Context) {
	read, unread, err := c.read(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.edge.metrics.hear(err)
		}
		return
	}
	old := c.current.Load()
	next := &snapshot{activities: map[sale.ID]*activity{}, items: map[itemKey]*item{}, at: time.Now()}
	for id, state := range read {
		delete(c.missing, id)
		next.activities[id] = c.activityOf(state.Catalog, state)
	}
	for id, a := range old.activities {
		switch {
		case unread[id]:
			next.activities[id] = a
		case next.activities[id] == nil:
			c.keep(next, a)
		}
	}
	all := make([]*activity, 0, len(next.activities))
	for _, a := range next.activities {
		all = append(all, a)
		c.itemsOf(next, a)
	}
	next.list = listOf(all)
	for key := range c.tills {
		if next.items[key] == nil {
			delete(c.tills, key)
		}
	}
	c.current.Store(next)
	c.edge.metrics.missing.Set(float64(len(c.missing)))
	for id, state := range read { // after the swap, so that every item has its till
		for commodity, left := range state.Remaining {
			if i := next.items[itemKey{id, commodity}]; i != nil {
				c.edge.soldOut.learn(i.till, state.Epoch, state.Version, left)
			}
		}
	}
}

// read asks Redis for all opened activities. One that cannot be read is unread and hides no other; several in a row are
// a Redis that does not answer.
func (c *catalog) read(ctx context.Context) (read map[sale.ID]lua.State, unread map[sale.ID]bool, err error) {
	limit, cancel := context.WithTimeout(ctx, readTimeout)
	ids, err := c.edge.deps.Ledger.Activities(limit)
	cancel()
	if err != nil {
		return nil, nil, err
	}
	if len(ids) > maxActivities {
		c.edge.metrics.hear(errors.New("more than 1000 activities in Redis: the rest is not sold here"))
		ids = ids[:maxActivities]
	}
	read, unread = make(map[sale.ID]lua.State, len(ids)), map[sale.ID]bool{}
	failed := 0
	for _, id := range ids {
		state, err := c.inspect(ctx, id)
		if err != nil {
			unread[id] = true
			if failed++; failed == readFailures || len(unread) == len(ids) {
				return nil, nil, err
			}
			c.edge.metrics.hear(err)
			continue
		}
		failed = 0
		if state.Opened && state.Catalog.ID == id {
			read[id] = state
		}
	}
	return read, unread, nil
}

func (c *catalog) activityOf(a sale.Activity, state lua.State) *activity {
	if state.Status != "" {
		a.Status = state.Status
	}
	return &activity{
		Activity: a, epoch: state.Epoch,
		selling:    a.Status == sale.Live && !state.Recovering && state.Proven,
		notStarted: notStartedBody(a.StartsAt),
		view:       viewOf(a, state.Remaining),
	}
}

// keep holds on to an activity that was known and is gone from Redis: until its end it is busy, not unknown, and somebody
// is told once, because that is a loss that an operator must see.
func (c *catalog) keep(next *snapshot, a *activity) {
	now := c.now()
	if a.Status == sale.Ended || now >= a.EndsAt {
		if now < a.EndsAt+sale.Millis(forgetAfter.Milliseconds()) {
			next.activities[a.ID] = a
		}
		return
	}
	gone := *a
	gone.selling = false
	next.activities[a.ID] = &gone
	if !c.missing[a.ID] {
		c.missing[a.ID] = true
		c.edge.deps.Logger.Error("an activity that is not ended has vanished from Redis: it is busy until it is rebuilt", "activity", a.ID.String())
	}
}

// itemsOf gives each item of the activity its till.
func (c *catalog) itemsOf(next *snapshot, a *activity) {
	for _, i := range a.Items {
		key := itemKey{a.ID, i.Commodity}
		t := c.tills[key]
		if t == nil {
			c.numbers++
			t = c.edge.newTill(c.numbers, a.ID, i.Commodity)
			c.tills[key] = t
		}
		next.items[key] = &item{Item: i, till: t}
	}
}
