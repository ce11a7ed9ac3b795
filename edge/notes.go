package edge

import (
	"context"
	"sync"
	"time"

	"floodgate/lua"
)

const (
	notesRoom    = 8192                   // a note that is lost only makes the sweep look earlier
	notesBatch   = 64                     // members one call moves, 15 KB each at most
	notesTimeout = 500 * time.Millisecond // off the critical path
)

// note is a reserve batch of which the queue has every message.
type note struct {
	cell    lua.Cell
	pending string
}

// notes tells the ledger what the queue has, gathered and off the buyers' way, in one owned goroutine.
type notes struct {
	ledger  Reserver
	metrics *metrics
	wake    chan struct{}

	mu      sync.Mutex // guards waiting
	waiting []note
}

func newNotes(ledger Reserver, m *metrics) *notes {
	return &notes{ledger: ledger, metrics: m, wake: make(chan struct{}, 1)}
}

// add takes a note along; where there is no room it is dropped and counted.
func (n *notes) add(x note) {
	n.mu.Lock()
	full := len(n.waiting) >= notesRoom
	if !full {
		n.waiting = append(n.waiting, x)
	}
	n.mu.Unlock()
	if full {
		n.metrics.notesLost.Inc()
		return
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run tells until ctx ends, then once more what is left.
func (n *notes) run(ctx context.Context) {
	for {
		select {
		case <-n.wake:
			n.tell(ctx)
		case <-ctx.Done():
			n.tell(context.WithoutCancel(ctx))
			return
		}
	}
}

func (n *notes) tell(ctx context.Context) {
	n.mu.Lock()
	taken := n.waiting
	n.waiting = nil
	n.mu.Unlock()
	byCell := map[lua.Cell][]string{}
	for _, x := range taken {
		byCell[x.cell] = append(byCell[x.cell], x.pending)
	}
	ctx, cancel := context.WithTimeout(ctx, notesTimeout)
	defer cancel()
	for cell, pending := range byCell {
		for len(pending) > 0 {
			k := min(len(pending), notesBatch)
			if err := n.ledger.Enqueued(ctx, cell, pending[:k]...); err != nil {
				n.metrics.notesLost.Add(float64(k))
			}
			pending = pending[k:]
		}
	}
}
