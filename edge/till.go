package edge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"floodgate/crashpoint"
	"floodgate/lua"
	"floodgate/sale"
)

const (
	reserveTries = 3 // an unanswered reserve is asked again with the same tokens, never given back; then busy
	confirmTries = 3 // how often a reply may grow old under way before the buyer is told to ask again
)

// till is where the calls for one item meet: they gather for one reserve call at a time. It lives as long as the edge
// knows the item and also holds the newest (epoch, version) of its stock.
type till struct {
	edge      *Edge
	number    uint64 // unique in this process: the key in the sold-out cache
	cell      lua.Cell
	commodity sale.ID
	line      *gather
	news      news
}

// news is the newest known state of an item's stock.
type news struct {
	mu             sync.Mutex // guards what follows
	epoch, version int64
	setAt          time.Time // when the sold-out cache was last told
}

func (e *Edge) newTill(number uint64, activity, commodity sale.ID) *till {
	t := &till{edge: e, number: number, cell: lua.Cell{Activity: activity}, commodity: commodity}
	t.line = &gather{most: 1, batch: lua.MaxReserve, room: e.cfg.Waiting, run: t.reserve}
	if e.cfg.Single {
		t.line.most, t.line.batch = e.cfg.Connections, 1
	}
	return t
}

// reserved is a batch that took units: all of its tokens must be acknowledged before the ledger is told so.
type reserved struct {
	cell    lua.Cell
	pending string // the member that stands for the batch
	left    atomic.Int64
	lost    atomic.Bool // one of them was not acknowledged: the sweep shall look soon
}

// reserve asks the ledger for a batch and sends on those who got a unit.
func (t *till) reserve(batch []*call) {
	price := batch[len(batch)-1].item.Price
	reply, err := t.ask(batch, price)
	crashpoint.At("edge.reserved")
	t.line.landed()
	if err != nil {
		for _, c := range batch {
			c.done(sale.Busy)
		}
		return
	}
	if reply.toldStock() {
		t.edge.soldOut.learn(t, reply.Epoch, reply.Version, reply.Remaining)
	}
	took := &reserved{cell: t.cell, pending: reply.Pending}
	send := make([]*call, 0, len(batch))
	var had []*call
	taken := reply.taken()
	for i, c := range batch {
		answer := reply.Answers[i]
		c.asked = reply.asked
		if c.confirming || !goesOn(answer.Code) || (answer.Code == lua.Again && t.edge.acked.has(c.token)) {
			if answer.Code == lua.Duplicate && !c.confirming && len(answer.Live) > 0 {
				c.live = answer.Live
				had = append(had, c)
				continue
			}
			t.settle(c, answer)
			continue
		}
		if answer.Code == taken {
			c.batch = took
			took.left.Add(1)
		}
		c.message = sale.Message{Token: c.token, User: c.user, Activity: c.activity, Commodity: c.commodity,
			Price: price, Quantity: c.quantity, At: reply.At, LedgerID: reply.LedgerID}
		send = append(send, c)
	}
	t.edge.enqueue(send)
	if len(had) > 0 {
		had[0].wake <- func() { t.nameOrders(had) }
	}
}

// nameOrders tells those who already have theirs the number of their order, once there is one: one read for a batch.
func (t *till) nameOrders(had []*call) {
	tokens := make([]sale.Token, len(had))
	for i, c := range had {
		tokens[i] = c.live[0]
	}
	found, err := t.edge.reservations(t.cell.Activity, tokens...)
	if err != nil {
		t.edge.metrics.hear(fmt.Errorf("cannot read the orders of duplicates: %w", err))
	}
	for _, c := range had {
		c.order = found[c.live[0]].OrderNo
		c.done(sale.Duplicate)
	}
}

// replied is the answer to a reserve call that may have been asked more than once.
type replied struct {
	lua.ReserveReply
	asked time.Time // before the last try: whatever the reply says was true no earlier
	tries int
}

// ask is the reserve call, asked again with the same tokens where it is unanswered.
func (t *till) ask(batch []*call, price sale.Cents) (r replied, err error) {
	requests := make([]lua.ReserveRequest, len(batch))
	for i, c := range batch {
		requests[i] = lua.ReserveRequest{Token: c.token, User: c.user, Quantity: c.quantity}
	}
	t.edge.metrics.reserveBatch.Observe(float64(len(batch)))
	for r.tries < reserveTries {
		r.tries++
		r.asked = time.Now()
		ctx, cancel := context.WithTimeout(t.edge.work, t.edge.cfg.ReserveTimeout)
		r.ReserveReply, err = t.edge.deps.Ledger.Reserve(ctx, t.cell, t.commodity, price, requests)
		cancel()
		if err == nil && len(r.Answers) != len(batch) {
			panic(fmt.Sprintf("edge: %d answers to %d requests", len(r.Answers), len(batch)))
		}
		if err == nil || errors.Is(err, lua.ErrUnopened) || errors.Is(err, lua.ErrUnproven) {
			return r, err
		}
		t.edge.metrics.unanswered.Inc()
	}
	t.edge.metrics.hear(fmt.Errorf("cannot reserve item %s of activity %s: %w", t.commodity, t.cell.Activity, err))
	return r, err
}

// taken is the code of those whose tokens make up the reply's pending member: the reserved ones, or, where an earlier try
// took them and its answer was lost, all that are there again.
func (r *replied) taken() lua.Code {
	if r.tries > 1 && !slices.ContainsFunc(r.Answers, func(a lua.ReserveAnswer) bool { return a.Code != lua.Again }) {
		return lua.Again
	}
	return lua.Reserved
}

// toldStock says that the reply's remaining is the stock: where the stock is not open or not proven it is a placeholder.
func (r *replied) toldStock() bool {
	return !slices.ContainsFunc(r.Answers, func(a lua.ReserveAnswer) bool {
		return a.Code == lua.Unopened || a.Code == lua.Unproven
	})
}

func goesOn(code lua.Code) bool { return code == lua.Reserved || code == lua.Again }

// settle answers a call whose fate the reserve reply has decided.
func (t *till) settle(c *call, answer lua.ReserveAnswer) {
	switch {
	case goesOn(answer.Code) && c.confirming && time.Since(c.asked) > lua.Grace:
		t.edge.confirm(c)
	case goesOn(answer.Code):
		c.gate = gateAccepted
		c.done(sale.Accepted)
	case c.confirming:
		// The unit went while this process stood still. The message may yet be adopted: the token's poll knows.
		c.done(sale.Busy)
	default:
		c.done(refusalOf(answer.Code))
	}
}

// refusalOf is what the buyer is told of a reserve code that took nothing.
func refusalOf(code lua.Code) sale.Code {
	switch code {
	case lua.SoldOut:
		return sale.SoldOut
	case lua.Duplicate:
		return sale.Duplicate
	case lua.NotStarted:
		return sale.NotStarted
	case lua.Ended:
		return sale.EndedCode
	case lua.Reused:
		return sale.TokenReused
	case lua.Unopened, lua.Unproven:
		return sale.Busy
	}
	panic(fmt.Sprintf("edge: unknown reserve code %d", code))
}
