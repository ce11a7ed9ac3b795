package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Crowd says how many come and how fast.
type Crowd struct {
	Addr        string        // host:port
	Connections int           // at once
	Count       int           // turns at most
	For         time.Duration // no turn begins later; 0: until Count are done
	Rate        float64       // turns a second, begun on time whether or not earlier ones are done as long as a connection is free (open loop); 0: as fast as answers come (closed loop)
}

// Turn is what one of the crowd does: turn number n, which was due at the given time. Latency counts from due, so that a server
// that stalls is charged for everybody who had to wait.
type Turn func(c *Conn, n int, due time.Time)

// Tally is what a crowd has noted, all connections merged.
type Tally struct {
	Kinds [kindsMax]*hdrhistogram.Histogram // microseconds; never nil
	Fails int                               // requests without an answer
	Took  time.Duration                     // from the first turn to the last note
	Turns int                               // begun
}

// Run sends the crowd and waits for it; ctx's end breaks all connections.
func (w Crowd) Run(ctx context.Context, turn Turn) Tally {
	conns := make([]*Conn, w.Connections)
	for i := range conns {
		conns[i] = &Conn{addr: w.Addr}
	}
	return w.RunOn(ctx, conns, turn)
}

// RunOn is Run on connections that the caller has opened; they are closed at the end.
func (w Crowd) RunOn(ctx context.Context, conns []*Conn, turn Turn) Tally {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for _, c := range conns {
		all.Go(func() {
			defer context.AfterFunc(ctx, c.cut)()
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				due, ok := w.due(ctx, began, n)
				if !ok {
					return
				}
				turn(c, n, due)
			}
		})
	}
	all.Wait()
	t := merge(conns, began)
	t.Turns = min(int(next.Load()), w.Count)
	for _, c := range conns {
		c.Close()
	}
	return t
}

// due waits until turn n is to begin; false: it is not to begin any more.
func (w Crowd) due(ctx context.Context, began time.Time, n int) (time.Time, bool) {
	if n >= w.Count {
		return time.Time{}, false
	}
	now := time.Now()
	if w.Rate == 0 {
		return now, w.For == 0 || now.Sub(began) < w.For
	}
	after := time.Duration(float64(n) / w.Rate * float64(time.Second))
	if w.For > 0 && after >= w.For {
		return time.Time{}, false
	}
	due := began.Add(after)
	if wait := due.Sub(now); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return time.Time{}, false
		}
	}
	return due, true
}

func merge(conns []*Conn, began time.Time) Tally {
	t := Tally{}
	for k := range t.Kinds {
		t.Kinds[k] = newHistogram()
	}
	last := began
	for _, c := range conns {
		for k, h := range c.notes {
			if h != nil {
				t.Kinds[k].Merge(h)
			}
		}
		t.Fails += c.fails
		if c.last.After(last) {
			last = c.last
		}
	}
	t.Took = last.Sub(began)
	return t
}

// Count is how many answers of a kind there were.
func (t *Tally) Count(kind int) int64 { return t.Kinds[kind].TotalCount() }

// Rate is the answers of a kind a second.
func (t *Tally) Rate(kind int) float64 {
	if t.Took <= 0 {
		return 0
	}
	return float64(t.Count(kind)) / t.Took.Seconds()
}

// Millis is the latency of a kind at a percentile (0..100), in milliseconds.
func (t *Tally) Millis(kind int, percentile float64) float64 {
	return float64(t.Kinds[kind].ValueAtPercentile(percentile)) / 1000
}
