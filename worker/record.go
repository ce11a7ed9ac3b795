package worker

import (
	"context"
	"maps"
	"sync"
	"time"

	"floodgate/mq"
	"floodgate/sql"
)

// recorder writes placed positions into the database before their batches are acknowledged: "drained" must be observable by
// whoever recovers. Positions that wait at the same moment share one write.
type recorder struct {
	store *sql.Store
	topic string

	mu      sync.Mutex // guards what follows
	waiting map[string]int64
	turn    *turn // the write that will carry what waits
	writing bool
}

// turn is one write that several wait for.
type turn struct {
	done chan struct{}
	err  error
}

func newRecorder(store *sql.Store, topic string) *recorder {
	return &recorder{store: store, topic: topic, waiting: map[string]int64{}, turn: &turn{done: make(chan struct{})}}
}

// record returns when the position is durably noted. Whoever comes first writes for all who wait.
func (r *recorder) record(ctx context.Context, p mq.Position) error {
	r.mu.Lock()
	r.waiting[p.Queue] = max(r.waiting[p.Queue], p.Next)
	mine := r.turn
	lead := !r.writing
	r.writing = true
	r.mu.Unlock()
	if lead {
		r.lead(ctx)
	}
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lead writes turn after turn until nobody waits.
func (r *recorder) lead(ctx context.Context) {
	for {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			r.writing = false
			r.mu.Unlock()
			return
		}
		positions, t := maps.Clone(r.waiting), r.turn
		clear(r.waiting)
		r.turn = &turn{done: make(chan struct{})}
		r.mu.Unlock()
		wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		t.err = r.store.RecordPositions(wctx, r.topic, positions)
		cancel()
		close(t.done)
	}
}
