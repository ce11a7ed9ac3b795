package worker

import (
	"context"
	"sync"
	"time"

	"floodgate/mq"
	"floodgate/sql"
)

// recorder writes placed positions into the database before their batches are acknowledged: "drained" must be observable by
// whoever recovers. Positions that wait at the same moment share one write.
type recorder struct {
	save func(ctx context.Context, next map[string]int64) error
	pen  chan struct{} // held by whoever writes

	mu      sync.Mutex // guards what follows
	waiting map[string]int64
	turn    *turn // the write that will carry what waits
}

// turn is one write that several wait for.
type turn struct {
	done chan struct{}
	err  error
}

func newRecorder(store *sql.Store, topic string) *recorder {
	save := func(ctx context.Context, next map[string]int64) error { return store.RecordPositions(ctx, topic, next) }
	return &recorder{save: save, pen: make(chan struct{}, 1), waiting: map[string]int64{}, turn: &turn{done: make(chan struct{})}}
}

// record returns when the position is durably noted. Whoever gets the pen writes once for all who wait and passes it on: who wrote on
// while others come would not get back to its own queue for as long as the rush lasts.
func (r *recorder) record(ctx context.Context, p mq.Position) error {
	r.mu.Lock()
	r.waiting[p.Queue] = max(r.waiting[p.Queue], p.Next)
	mine := r.turn
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	case r.pen <- struct{}{}:
	}
	defer func() { <-r.pen }()
	select {
	case <-mine.done: // written while the pen was awaited
		return mine.err
	default:
		return r.write(ctx)
	}
}

// write carries what waits; the pen is held.
func (r *recorder) write(ctx context.Context) error {
	r.mu.Lock()
	positions, t := r.waiting, r.turn
	r.waiting, r.turn = map[string]int64{}, &turn{done: make(chan struct{})}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	t.err = r.save(ctx, positions)
	close(t.done)
	return t.err
}
