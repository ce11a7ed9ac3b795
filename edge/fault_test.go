package edge

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/lua"
	"floodgate/sale"
)

// slowLine is a TCP proxy before Redis that can keep back what Redis answers on the connections of that moment.
type slowLine struct {
	net.Listener
	target string
	mu     sync.Mutex
	hold   bool // keep back the answers of reserve calls
	held   chan struct{}
	wg     sync.WaitGroup
}

func newSlowLine(t testing.TB, target string) *slowLine {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &slowLine{Listener: l, target: target, held: make(chan struct{})}
	p.wg.Go(p.run)
	t.Cleanup(func() { l.Close(); p.wg.Wait() })
	return p
}

func (p *slowLine) run() {
	for {
		in, err := p.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			in.Close()
			continue
		}
		kept := make(chan struct{})
		var once sync.Once
		p.wg.Go(func() { // to Redis; the first reserve call while hold is on keeps back its answer for good
			defer out.Close()
			b := make([]byte, 64<<10)
			for {
				n, err := in.Read(b)
				if err != nil {
					return
				}
				if bytes.Contains(bytes.ToLower(b[:n]), []byte("evalsha")) && bytes.Contains(b[:n], []byte(":stock")) && p.take() {
					once.Do(func() { close(kept) })
				}
				if _, err := out.Write(b[:n]); err != nil {
					return
				}
			}
		})
		p.wg.Go(func() {
			defer in.Close()
			b := make([]byte, 64<<10)
			for {
				n, err := out.Read(b)
				if err != nil {
					return
				}
				select {
				case <-kept:
					continue
				default:
				}
				if _, err := in.Write(b[:n]); err != nil {
					return
				}
			}
		})
	}
}

// take says whether this reserve call is the one whose answer is lost.
func (p *slowLine) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.hold
	p.hold = false
	if was {
		close(p.held)
	}
	return was
}

func TestCase09TheFirstReplyIsLost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on func(*setup)) {
		var line *slowLine
		a := newActivity(10, 1)
		s := newShop(t, on, selling(a), func(set *setup) {
			set.cfg.ReserveTimeout = 200 * time.Millisecond
			set.ledger = func(l Ledger) Ledger {
				rest := l.(*own)
				options := rest.rdb().Options()
				line = newSlowLine(t, options.Addr)
				slow := redis.NewClient(&redis.Options{Addr: line.Addr().String(), MaxRetries: -1, ContextTimeoutEnabled: true})
				t.Cleanup(func() { slow.Close() })
				return &throughLine{own: rest, line: lua.New(slow, lua.Options{Embedded: set.redis == ""})}
			}
		})
		line.mu.Lock()
		line.hold = true
		line.mu.Unlock()
		u := newID()
		token := s.requestToken(u, a.ID)
		want(t, "told", s.mustBuy(a, u, token, "1").told(t), sale.Accepted)
		<-line.held // one answer was really lost
		want(t, "remaining", s.remaining(a), 9)
		want(t, "again", s.mustBuy(a, u, token, "1").told(t), sale.Accepted)
		want(t, "remaining", s.remaining(a), 9)
		want(t, "orders", s.queue.all()[0].Token, token)
	})
}

// throughLine reserves through the slow line and reads beside it.
type throughLine struct {
	*own
	line *lua.Ledger
}

func (l *throughLine) Reserve(ctx context.Context, c lua.Cell, commodity sale.ID, price sale.Cents, batch []lua.ReserveRequest) (lua.ReserveReply, error) {
	return l.line.Reserve(ctx, c, commodity, price, batch)
}

func TestAVanishedActivityIsBusy(t *testing.T) {
	t.Parallel()
	a := newActivity(10, 1)
	s := newShop(t, selling(a))
	must(t, s.ledger.Drop(t.Context(), lua.Cell{Activity: a.ID}))
	eventually(t, "busy by itself", func() bool { return s.refusedAs(a) == sale.Busy })
	u := newID()
	r := s.mustBuy(a, u, s.requestToken(u, a.ID), "1")
	want(t, "told", r.told(t), sale.Busy)
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	families, err := s.metrics.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == "floodgate_edge_missing_activities" {
			want(t, "the metric says so", f.GetMetric()[0].GetGauge().GetValue(), 1.0)
		}
	}
}

func TestCase14AStockThatIsGoneIsBusy(t *testing.T) {
	t.Parallel()
	a := newActivity(10, 1)
	s := newShop(t, selling(a))
	for _, key := range s.mini.Keys() {
		if len(key) > 6 && key[len(key)-6:] == ":stock" {
			s.mini.Del(key)
		}
	}
	u := newID()
	want(t, "told", s.mustBuy(a, u, s.requestToken(u, a.ID), "1").told(t), sale.Busy)
}

func TestRedisGoneIsBusy(t *testing.T) {
	t.Parallel()
	a := newActivity(10, 1)
	s := newShop(t, selling(a), func(s *setup) { s.cfg.ReserveTimeout = 100 * time.Millisecond })
	s.mini.Close()
	u := newID()
	want(t, "told", s.mustBuy(a, u, s.requestToken(u, a.ID), "1").told(t), sale.Busy)
	want(t, "the list still stands", s.do(request{"GET", "/api/activities/" + a.ID.String(), "", nil}).status, http.StatusOK)
}

// An edge that has never reached Redis does not know that an activity is unknown.
func TestAnEdgeWithoutRedisIsBusy(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(s *setup) { s.ledger = func(Ledger) Ledger { return noLedger{} } })
	a := newActivity(1, 1)
	want(t, "buy", s.do(request{"POST", buyPath(a, 0), "", nil}).told(t), sale.Busy)
	want(t, "token", s.do(request{"POST", "/api/activities/1/token", "", nil}).told(t), sale.Busy)
	want(t, "activity", s.do(request{"GET", "/api/activities/1", "", nil}).told(t), sale.Busy)
	want(t, "list", s.do(request{"GET", "/api/activities", "", nil}).told(t), sale.Busy)
	if s.edge.Ready() == nil {
		t.Error("ready")
	}
}

// One activity that cannot be read hides no other.
func TestABrokenActivityHidesNoOther(t *testing.T) {
	t.Parallel()
	broken, good := newActivity(10, 1), newActivity(10, 1)
	s := newShop(t, selling(broken, good))
	s.mini.HSet("seckill:{"+broken.ID.String()+".0}:meta", "catalog", "{")
	u := newID()
	must(t, s.ledger.Pause(t.Context(), lua.Cell{Activity: good.ID}))
	eventually(t, "news of the good one", func() bool { return s.refusedAs(good) == sale.Busy })
	want(t, "the broken one goes on as it was", s.mustBuy(broken, u, s.requestToken(u, broken.ID), "1").told(t), sale.Accepted)
	want(t, "ready", s.edge.Ready() == nil, true)
}

// noLedger is a Redis that never answered.
type noLedger struct{ Ledger }

func (noLedger) Activities(context.Context) ([]sale.ID, error) { return nil, io.ErrUnexpectedEOF }

func TestAStockChangeIsHeard(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on func(*setup)) {
		a := newActivity(1, 1)
		s := newShop(t, on, selling(a))
		u := newID()
		want(t, "the last", s.mustBuy(a, u, s.requestToken(u, a.ID), "1").told(t), sale.Accepted)
		eventually(t, "sold out from the path alone", func() bool { return s.refusedAs(a) == sale.SoldOut })
		code, err := s.ledger.Restock(t.Context(), lua.Cell{Activity: a.ID}, a.Items[0].Commodity, 1, 1, newID().String())
		must(t, err)
		want(t, "restock", code, lua.Reserved)
		u = newID()
		eventually(t, "for sale again", func() bool {
			r, err := s.buy(a, u, s.requestToken(u, a.ID), "1")
			return err == nil && r.status == http.StatusAccepted
		})
	})
}

// The embedded stop: what is in hand is answered, new work is refused, and Run returns in time.
func TestAGracefulStopAnswersWhatIsInHand(t *testing.T) {
	t.Parallel()
	a := newActivity(10, 1)
	s := newShop(t, selling(a))
	entered, release := make(chan struct{}), make(chan struct{})
	s.queue.failWith(func([]sale.Message) error { close(entered); <-release; return nil })
	u := newID()
	answered := make(chan answerOf, 1)
	go func() {
		r, err := s.buy(a, u, s.requestToken(u, a.ID), "1")
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	<-entered
	s.stop()
	eventually(t, "draining", func() bool { return s.edge.draining.Load() })
	if s.edge.Ready() == nil {
		t.Error("ready while it stops")
	}
	want(t, "new work", s.refusedAs(a), sale.Busy)
	close(release)
	r := <-answered
	want(t, "in hand", r.told(t), sale.Accepted)
	want(t, "the line is closed", r.closed, true)
	start := time.Now()
	s.halt()
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("the stop took %s", d)
	}
}

func TestTheQueueIsNotedInTheLedger(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on func(*setup)) {
		a := newActivity(10, 1)
		s := newShop(t, on, selling(a))
		u := newID()
		want(t, "told", s.mustBuy(a, u, s.requestToken(u, a.ID), "1").told(t), sale.Accepted)
		key := "seckill:{" + a.ID.String() + ".0}:pending"
		eventually(t, "the next look is 30 s after the reserve", func() bool {
			z, err := s.rdb.ZRangeWithScores(t.Context(), key, 0, -1).Result()
			return err == nil && len(z) == 1 && z[0].Score-float64(s.queue.all()[0].At) > 25_000
		})
	})
}

// raw sends bytes as they stand and reads one answer.
func (s *shop) raw(text string) string {
	s.t.Helper()
	c, err := net.Dial("tcp", s.url[len("http://"):])
	must(s.t, err)
	defer c.Close()
	must(s.t, c.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(c, text)
	must(s.t, err)
	b := make([]byte, 4096)
	n, err := c.Read(b)
	must(s.t, err)
	return string(b[:n])
}
