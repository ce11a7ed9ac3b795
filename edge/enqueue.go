package edge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodgate/crashpoint"
	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
)

// sendsInFlight is how many batches fly to the queue at once: with one the queue idles while answers are dealt, more
// gather less and were slower.
const sendsInFlight = 2

func newQueue(e *Edge) *gather {
	g := &gather{most: sendsInFlight, batch: mq.MaxSend, room: e.cfg.Waiting, run: e.send}
	if e.cfg.Single {
		g.most, g.batch = e.cfg.Connections, 1
	}
	return g
}

// enqueue puts a reserve batch into line for the queue. Where there is no room the buyers are told to ask again: their
// reservations stand, and the sweep places them.
func (e *Edge) enqueue(batch []*call) {
	for _, c := range batch {
		c.gate = gateEnqueue
	}
	if len(batch) == 0 || e.queue.add(batch...) {
		return
	}
	for _, c := range batch {
		e.forget(c)
		c.done(sale.Busy)
	}
}

// send hands a batch to the queue and answers its buyers. No answer from the queue is no harm: the reservation itself is
// the outbox. A refusal is (the embedded file is full): accepted would be a lie there.
func (e *Edge) send(batch []*call) {
	messages := make([]sale.Message, len(batch))
	for i, c := range batch {
		messages[i] = c.message
	}
	e.metrics.sendBatch.Observe(float64(len(batch)))
	ctx, cancel := context.WithTimeout(e.work, e.cfg.SendTimeout)
	err := e.deps.Producer.Send(ctx, messages)
	cancel()
	if err == nil {
		crashpoint.At("edge.enqueued")
	}
	e.queue.landed()
	switch {
	case errors.Is(err, mq.ErrUnanswered):
		e.metrics.unacknowledged.Add(float64(len(batch)))
	case err != nil:
		e.metrics.hear(fmt.Errorf("cannot enqueue %d orders: %w", len(batch), err))
	}
	for _, c := range batch {
		e.sent(c, err)
	}
}

// sent answers one buyer after the queue has.
func (e *Edge) sent(c *call, err error) {
	if err != nil {
		e.forget(c)
	} else {
		e.acked.add(c.token)
		e.acknowledge(c)
	}
	switch {
	case err != nil && !errors.Is(err, mq.ErrUnanswered):
		c.done(sale.Busy)
	case time.Since(c.asked) > lua.Grace:
		e.confirm(c)
	default:
		c.gate = gateAccepted
		c.done(sale.Accepted)
	}
}

// confirm asks reserve again with the same token: the reply is older than a recovery waits, so the unit may be gone.
func (e *Edge) confirm(c *call) {
	c.confirming = true
	c.rounds++
	if c.rounds > confirmTries || !c.item.till.line.add(c) {
		c.done(sale.Busy)
	}
}

// acknowledge notes that the queue has the call's message; the last of its batch tells the ledger.
func (e *Edge) acknowledge(c *call) {
	if b := c.batch; b != nil && b.left.Add(-1) == 0 && !b.lost.Load() {
		e.notes.add(note{b.cell, b.pending})
	}
}

// forget notes that the queue may not have the call's message: its batch stays due for the sweep.
func (e *Edge) forget(c *call) {
	if b := c.batch; b != nil {
		b.lost.Store(true)
		b.left.Add(-1)
	}
}
