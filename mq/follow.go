package mq

import (
	"context"
	"strconv"

	"floodgate/mq/remoting"
)

// follow takes one queue's messages, batch after batch, until ctx ends. Its place is kept here, so an outage only means to ask
// again; the broker's copy, committed after each placed batch, is for whoever takes the queue over.
func (m *member) follow(ctx context.Context, q queue) {
	at, ok := m.place(ctx, q)
	for ok {
		got, err := m.cluster.pull(ctx, m.cfg.Group, q, at, m.cfg.ConsumeBatch, true)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			ok = rest(ctx, m.cfg.Probe)
		case got.next < at && len(got.messages) == 0:
			m.logger.Error("the queue is shorter than its recorded position: its broker has lost messages", "queue", q.name(), "position", at, "end", got.next)
			at = got.next
		case len(got.messages) == 0 && got.next != at:
			m.logger.Warn("messages were gone before they were taken", "queue", q.name(), "from", at, "to", got.next)
			at = got.next
		case len(got.messages) > 0:
			if err := m.take(ctx, q, got); err != nil {
				return // stopped before it was placed
			}
			at = got.next
		}
	}
}

// place finds where the group stands in the queue: at the oldest message for a new group.
func (m *member) place(ctx context.Context, q queue) (at int64, ok bool) {
	for ctx.Err() == nil {
		at, err := m.cluster.offset(ctx, q, remoting.QueryOffset, m.cfg.Group, -1)
		if err == nil && at < 0 {
			at, err = m.cluster.offset(ctx, q, remoting.MinOffset, "", 0)
		}
		if err == nil {
			return at, true
		}
		rest(ctx, m.cfg.Probe)
	}
	return 0, false
}

// take puts what cannot be read among the dead letters, has the rest placed, and commits.
func (m *member) take(ctx context.Context, q queue, got pulled) error {
	taken := make([]raw, len(got.messages))
	for i, x := range got.messages {
		taken[i] = raw{x.Offset, x.Body}
	}
	good, bad := read(taken)
	if err := m.bury(ctx, q, bad); err != nil {
		return err
	}
	if err := m.offer.offer(ctx, Batch{Messages: good, Position: Position{Queue: q.name(), Next: got.next}}); err != nil {
		return err
	}
	m.commit(ctx, q, got.next)
	return nil
}

// bury stores unreadable messages in the dead-letter topic, each again and again until that is acknowledged. One at a time: they are
// rare, and a whole batch of them might be larger than a broker takes.
func (m *member) bury(ctx context.Context, q queue, bad []unreadable) error {
	for _, u := range bad {
		one := entry{body: u.body[:min(len(u.body), maxDead)], reason: u.reason}
		for pause := firstPause; ; pause = min(2*pause, lastPause) {
			err := m.dead.letter(ctx, one)
			if err == nil {
				break
			}
			m.logger.Error("an unreadable message cannot be put aside; its queue waits", "queue", q.name(), "offset", u.offset, "error", err)
			if !rest(ctx, pause) {
				return errStopped
			}
		}
		m.metrics.dead.Inc()
		m.logger.Error("an unreadable message was put among the dead letters", "queue", q.name(), "offset", u.offset, "reason", u.reason)
	}
	return nil
}

// commit records the group's place at the broker. What was placed is committed even where Run is ending. A lost commit costs nothing but
// messages that come again, and the next one covers it.
func (m *member) commit(ctx context.Context, q queue, next int64) {
	fields := q.fields()
	fields["consumerGroup"], fields["commitOffset"] = m.cfg.Group, strconv.FormatInt(next, 10)
	reply, err := call(context.WithoutCancel(ctx), m.cluster.broker(q.addr), remoting.Request{Code: remoting.UpdateOffset, Fields: fields})
	if err == nil && reply.Code != remoting.Success {
		err = refused(reply)
	}
	if err != nil {
		m.logger.Warn("a placed batch could not be acknowledged; it comes again after a restart", "queue", q.name(), "next", next, "error", err)
	}
}
