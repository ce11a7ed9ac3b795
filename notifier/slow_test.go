package notifier

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"floodgate/deploy/stacktest"
	"floodgate/sale"
)

const (
	crowd  = 200
	events = 2000
	burst  = 1 // events on their way at once, 200 frames: the readers share their cores with the notifier
)

// readAll reports the time of every burst-th message until the connection ends.
func (c *client) readAll(reached chan<- time.Time) {
	defer close(reached)
	_ = c.ws.SetReadDeadline(time.Time{})
	for n := 1; ; n++ {
		if _, _, err := c.ws.ReadMessage(); err != nil {
			return
		}
		if n%burst == 0 {
			reached <- time.Now()
		}
	}
}

// This test is not parallel: it counts goroutines and heap.
func TestCase53OneOfManyStopsReading(t *testing.T) {
	s := open(t, stacktest.Redis(t), nil)
	goroutines, heap := runtime.NumGoroutine(), liveHeap()
	slow := s.login(1)
	users := []sale.ID{1}
	var others []*client
	var reached []chan time.Time
	var readers sync.WaitGroup
	for range crowd - 1 {
		u := someID()
		c, at := s.login(u), make(chan time.Time, 1)
		users, others, reached = append(users, u), append(others, c), append(reached, at)
		readers.Go(func() { c.readAll(at) })
	}

	began := time.Now()
	worst := s.flood(users, reached)
	t.Logf("%d events to %d connections in %s; the slowest waited %s", events, crowd, time.Since(began), worst)
	if worst > time.Second {
		t.Errorf("an event took %s", worst)
	}
	flooded := time.Now()
	eventually(t, "the slow one is given up", func() bool { return s.n.metrics.open.Load() == crowd-1 })
	if took := time.Since(flooded); took > 10*time.Second {
		t.Errorf("the slow one was given up %s after the last event", took)
	}
	slow.ws.SetPingHandler(func(string) error { return nil }) // an answer would find nobody
	slow.closed(4008)                                         // what was on its way, and then why, though the server has long closed the line
	if n := value(s.n.metrics.closed.WithLabelValues("4008")); n != 1 {
		t.Errorf("%v connections closed as too slow", n)
	}

	for _, c := range append(others, slow) {
		c.ws.Close()
	}
	readers.Wait()
	eventually(t, "all connections have ended", func() bool { return s.n.metrics.open.Load() == 0 })
	eventually(t, "goroutines are as before", func() bool { return runtime.NumGoroutine() <= goroutines+2 }) // Redis's pool may have grown
	eventually(t, "the heap is as before", func() bool { return liveHeap() < heap+8<<20 })                   // the clients' halves are still held by this test
	if q := s.n.metrics.queued.Load(); q != 0 {
		t.Errorf("%d messages wait for nobody", q)
	}
}

// flood publishes all events and returns how long the slowest took from its burst's beginning to its reader.
func (s *shop) flood(users []sale.ID, reached []chan time.Time) (worst time.Duration) {
	s.t.Helper()
	for range events / burst {
		begin := time.Now()
		for range burst {
			batch := make([]sale.Outcome, len(users))
			for i, u := range users {
				batch[i] = outcome(u, s.token(u), sale.Paid)
			}
			s.publish(batch...)
		}
		for _, at := range reached {
			when, ok := <-at
			if !ok {
				s.t.Fatal("a connection that reads was closed")
			}
			worst = max(worst, when.Sub(begin))
		}
	}
	return worst
}

// liveHeap is what is still in use after two collections: the first may leave what finalizers and pools hold.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func value(c prometheus.Counter) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue()
}

// A client that stops when little is sent to it never fills its queue: the frame that does not leave gives it away.
func TestAStuckConnectionWithAShortQueue(t *testing.T) {
	t.Parallel()
	s := open(t, miniredis.RunT(t).Addr(), func(c *Config, clocks *times) {
		c.Queue = 100_000
		clocks.stuck, clocks.reread = 200*time.Millisecond, 50*time.Millisecond
	})
	c := s.login(1)
	batch := make([]sale.Outcome, 100)
	eventually(t, "the connection is stuck and given up", func() bool {
		for i := range batch {
			batch[i] = outcome(1, s.token(1), sale.Paid)
		}
		s.publish(batch...)
		return value(s.n.metrics.closed.WithLabelValues("4008")) == 1
	})
	c.closed(4008)
	if value(s.n.metrics.dropped) == 0 {
		t.Error("what waited was not counted")
	}
}
