package notifier

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/lua"
	"floodgate/sale"
)

// readBatch is how many tokens one reading asks for: what the ledger's other calls take.
const readBatch = lua.MaxBatch

// channelSize is how many publishes may wait for us: at 256 outcomes each, seconds of the highest rate.
const channelSize = 1000

// listen delivers what is published until ctx ends. Redis loses what is published while a subscription is being made
// again and says nothing of it, so each new subscription makes the catch-up read everything that may have changed.
func (n *Notifier) listen(ctx context.Context) error {
	sub := n.deps.RDB.Subscribe(ctx, lua.OutcomeChannel)
	defer sub.Close()
	events := sub.ChannelWithSubscriptions(redis.WithChannelSize(channelSize))
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-events:
			if !ok {
				return errors.New("the subscription to outcomes was closed")
			}
			n.hear(event)
		}
	}
}

func (n *Notifier) hear(event any) {
	switch e := event.(type) {
	case *redis.Subscription:
		n.metrics.resubs.Inc()
		n.subscribed.Store(true)
		signal(n.behind)
	case *redis.Message:
		var outcomes []sale.Outcome
		if err := json.Unmarshal([]byte(e.Payload), &outcomes); err != nil {
			n.failed("cannot read a published batch of outcomes", err)
			signal(n.behind) // what it said can be read from the ledger
			return
		}
		for _, o := range outcomes {
			n.hub.deliver(o, pushed)
		}
	}
}

// catchUp reads what has just been watched at once, and every unfinished token again when pushes may have been missed
// and every few seconds, until ctx ends. Readings and pushes meet in deliver, which sorts them out.
func (n *Notifier) catchUp(ctx context.Context) error {
	tick := time.NewTicker(n.times.reread)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.hub.wake:
			n.readFresh(ctx)
		case <-n.behind:
			n.readAgain(ctx)
		case <-tick.C:
			n.readFresh(ctx)
			n.readAgain(ctx)
			n.hub.dropStuck(n.times.stuck)
		}
	}
}

func (n *Notifier) readFresh(ctx context.Context) {
	unread := n.read(ctx, n.hub.takeFresh(), func(batch []sale.Token, found map[sale.Token]sale.Reservation) {
		for _, t := range batch {
			if r, ok := found[t]; ok {
				n.hub.deliver(r.Event(), snapshot)
			} else {
				n.hub.missing(t)
			}
		}
	})
	n.hub.giveBack(unread) // until the next tick
}

func (n *Notifier) readAgain(ctx context.Context) {
	n.read(ctx, n.hub.unfinished(), func(_ []sale.Token, found map[sale.Token]sale.Reservation) {
		for _, r := range found {
			n.hub.deliver(r.Event(), reread)
		}
	})
}

// readFailures in a row are a Redis that does not answer: the other batches would wait as long.
const readFailures = 3

// read asks the ledger for tokens in batches, each of one activity, and hands every batch with its answer to got. It
// returns what it did not read: a batch that cannot be read does not hide those of other activities behind it.
func (n *Notifier) read(ctx context.Context, tokens []sale.Token, got func([]sale.Token, map[sale.Token]sale.Reservation)) (unread []sale.Token) {
	slices.SortFunc(tokens, func(a, b sale.Token) int { return cmp.Compare(activityOf(a), activityOf(b)) })
	for failures := 0; len(tokens) > 0; {
		activity, size := activityOf(tokens[0]), 1
		for size < min(readBatch, len(tokens)) && activityOf(tokens[size]) == activity {
			size++
		}
		found, err := n.reservations(ctx, activity, tokens[:size])
		if n.failed("cannot read reservations", err) {
			if failures++; failures == readFailures || ctx.Err() != nil {
				return append(unread, tokens...)
			}
			unread = append(unread, tokens[:size]...)
		} else {
			failures = 0
			got(tokens[:size], found)
		}
		tokens = tokens[size:]
	}
	return unread
}

// activityOf reads a token whose signature was checked when its watch began.
func activityOf(t sale.Token) sale.ID {
	claims, _ := t.Peek()
	return claims.Activity
}

func (n *Notifier) reservations(ctx context.Context, activity sale.ID, batch []sale.Token) (map[sale.Token]sale.Reservation, error) {
	ctx, cancel := context.WithTimeout(ctx, n.times.redis)
	defer cancel()
	return n.deps.Ledger.Reservations(ctx, lua.Cell{Activity: activity}, batch...)
}
