package console

import (
	"context"

	"floodgate/sale"
	"floodgate/sql"
)

// checkAll judges the sums of a sale that held still: they are exact.
func (b *book) checkAll(ctx context.Context) error {
	for i := range b.out.Items {
		s := &b.out.Items[i]
		f := Finding{Commodity: s.Commodity}
		s.Reserved += s.Committed
		s.Difference = s.Total - s.ToApply - (s.Remaining + s.Occupied + s.LiveUnits + s.FallbackLeft)
		if f.Check = "sum"; s.Difference != 0 {
			b.found(f, "remaining %d + occupied %d + live orders %d + fallback %d is not the total %d (of which %d are still to be added): difference %d",
				s.Remaining, s.Occupied, s.LiveUnits, s.FallbackLeft, s.Total, s.ToApply, s.Difference)
		}
		if f.Check = "buyers-sum"; s.BuyersUnits != s.Reserved {
			b.found(f, "buyers hold %d slots in Redis, and reservations %d units", s.BuyersUnits, s.Reserved)
		}
	}
	return b.checkRows(ctx)
}

// checkBounds judges a sale that never held still by what no instant may break.
func (b *book) checkBounds(ctx context.Context) error { return b.checkRows(ctx) }

// checkRows judges what one snapshot of the database, and one look at Redis, tell each for itself.
func (b *book) checkRows(ctx context.Context) error {
	if s := b.seen.redis; !s.Opened && b.seen.activity.LiveEpoch > 0 && b.seen.activity.Expires() > s.Now {
		b.found(Finding{Check: "redis-lost"}, "Redis does not hold this activity, which was open there")
	}
	for i := range b.out.Items {
		b.checkItem(&b.out.Items[i])
	}
	doubts, err := b.store.Doubts(ctx, b.cell.Activity)
	if err != nil {
		return err
	}
	for _, d := range doubts {
		f := Finding{Check: "slot-rows", Commodity: d.Commodity, Token: d.Token, User: d.User}
		if d.Units > 0 {
			b.found(f, "order %s of user %s holds %d slots in the database for %d units", d.OrderNo, d.User, d.Slots, d.Units)
		} else {
			b.found(f, "user %s holds %d slots in the database for order %s, which is not live", d.User, d.Slots, d.OrderNo)
		}
	}
	users, err := b.store.OverLimit(ctx, b.cell.Activity, b.out.Limit)
	for _, u := range users {
		b.found(Finding{Check: "limit-rows", User: u}, "user %s has live orders for more than %d units of an item", u, b.out.Limit)
	}
	return err
}

func (b *book) checkItem(s *ItemAudit) {
	f := Finding{Commodity: s.Commodity}
	if f.Check = "oversold"; s.LiveUnits > s.Total-s.FallbackLeft {
		b.found(f, "live orders have %d units of %d", s.LiveUnits, s.Total-s.FallbackLeft)
	}
	if f.Check = "sold"; s.Sold != s.LiveUnits {
		b.found(f, "the item's counter says %d sold, its live orders %d", s.Sold, s.LiveUnits)
	}
	if f.Check = "slots-sum"; s.SlotRows != s.LiveUnits {
		b.found(f, "%d slots in the database, and live orders for %d units", s.SlotRows, s.LiveUnits)
	}
	if f.Check = "remaining"; s.Remaining < 0 {
		b.found(f, "%d units remain in Redis", s.Remaining)
	}
	if f.Check = "stock"; b.seen.redis.Opened {
		if _, ok := b.seen.redis.Remaining[s.Commodity]; !ok {
			b.found(f, "Redis has no stock of this item")
		}
	}
}

// QueueAudit is how far placing is behind the queue, and what lies beside the way. None of it breaks a promise.
type QueueAudit struct {
	Backlog     int64        `json:"backlog"` // messages not placed yet, at most: a queue may number its first message 1
	Parked      int64        `json:"parked"`  // in the retry topic: 0 unless something went wrong
	Queues      []QueuePlace `json:"queues"`
	DeadLetters int          `json:"deadLetters"` // at most 1000 are counted
	Unannounced int          `json:"unannounced"` // rows whose outcome was not told yet; at most 500 are counted
	Error       string       `json:"error,omitempty"`
}

// QueuePlace is one queue of the topic: the offset behind its newest message, and the next to be placed.
type QueuePlace struct {
	Queue  string `json:"queue"`
	End    int64  `json:"end"`
	Placed int64  `json:"placed"`
}

// auditQueue asks the queue. A queue that does not answer is told: reservations are the outbox, so the books balance without it.
func (c *Console) auditQueue(ctx context.Context) QueueAudit {
	out := QueueAudit{Queues: []QueuePlace{}}
	if err := c.readQueue(ctx, &out); err != nil {
		out.Error = err.Error()
	}
	return out
}

func (c *Console) readQueue(ctx context.Context, out *QueueAudit) error {
	unannounced, err := c.deps.Store.Unannounced(ctx, sale.At(c.now()), 500)
	if err != nil {
		return err
	}
	out.Unannounced = len(unannounced)
	placed, err := c.deps.Store.PlacedPositions(ctx, c.deps.Topic)
	if err != nil {
		return err
	}
	ends, err := c.deps.Backlog.Ends(ctx)
	if err != nil {
		return err
	}
	for _, e := range ends {
		out.Queues = append(out.Queues, QueuePlace{e.Queue, e.Next, placed[e.Queue]})
		out.Backlog += max(0, e.Next-placed[e.Queue])
	}
	if out.Parked, err = c.deps.Backlog.Parked(ctx); err != nil {
		return err
	}
	letters, err := c.deps.Letters.List(ctx, 1000)
	out.DeadLetters = len(letters)
	return err
}

// liveRow is the row where it is there and live.
func liveRow(rows map[sale.Token]*sale.Order, t sale.Token) *sale.Order {
	if o := rows[t]; o != nil && o.State.Live() {
		return o
	}
	return nil
}

// rowsOf reads the rows of tokens.
func rowsOf(ctx context.Context, store *sql.Store, tokens []sale.Token) (map[sale.Token]*sale.Order, error) {
	orders, err := store.OrdersByToken(ctx, tokens...)
	rows := make(map[sale.Token]*sale.Order, len(orders))
	for i := range orders {
		rows[orders[i].Token] = &orders[i]
	}
	return rows, err
}
