package mq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"floodgate/sale"
)

const (
	firstPause = 50 * time.Millisecond // before a batch is offered again; doubled each time
	lastPause  = time.Second           // the longest: a database that is back is used within a second
	// grace is how long a handler may finish what is in its hands after Run's context has ended; then its own is cut.
	grace = 5 * time.Second
)

// errStopped says that a batch was given back unplaced because Run is ending.
var errStopped = errors.New("stopped before the batch was placed")

// offerer hands batches to a handler, again and again in place until the handler accepts.
type offerer struct {
	handle  Handler
	metrics *metrics
	logger  *slog.Logger
}

// offer returns nil when the handler has accepted the batch, and errStopped when ctx ended before it did. A handler that is running when
// ctx ends is waited for: its own context lives on for the grace time.
func (o *offerer) offer(ctx context.Context, b Batch) error {
	o.metrics.inFlight.Inc()
	defer o.metrics.inFlight.Dec()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if ctx.Err() != nil {
			return errStopped
		}
		err := o.try(ctx, b)
		if err == nil {
			o.metrics.consumed.Add(float64(len(b.Messages)))
			return nil
		}
		if ctx.Err() != nil {
			return errStopped
		}
		o.metrics.redelivered.Inc()
		if pause == firstPause || pause == lastPause { // at most once a second and queue
			o.logger.Warn("a batch could not be placed and is offered again", "queue", b.Position.Queue,
				"messages", len(b.Messages), "next", b.Position.Next, "error", err)
		}
		if !rest(ctx, pause) {
			return errStopped
		}
	}
}

// try calls the handler once; a panic becomes an error with its stack.
func (o *offerer) try(ctx context.Context, b Batch) (err error) {
	inHand, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() { // finish what is in hand, then cut
		t := time.AfterFunc(grace, cut)
		context.AfterFunc(inHand, func() { t.Stop() })
	})()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return o.handle(inHand, b)
}

// rest waits for d; false where ctx ends first.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// raw is a message as it lies in a queue.
type raw struct {
	offset int64
	body   []byte
}

// unreadable is a raw message with what is wrong with it.
type unreadable struct {
	raw
	reason string
}

// read parts what can be placed from what cannot.
func read(taken []raw) (good []sale.Message, bad []unreadable) {
	good = make([]sale.Message, 0, len(taken))
	for _, r := range taken {
		m, err := sale.ReadMessage(r.body)
		if err != nil {
			bad = append(bad, unreadable{r, err.Error()})
			continue
		}
		good = append(good, m)
	}
	return good, bad
}
