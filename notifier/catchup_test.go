package notifier

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"floodgate/deploy/stacktest"
	"floodgate/sale"
)

// line is a TCP line to Redis that a test can cut: what is open breaks, what is new is refused until it is mended.
type line struct {
	addr string

	mu    sync.Mutex
	to    string
	whole bool
	open  map[net.Conn]struct{}
	wg    sync.WaitGroup
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{addr: listener.Addr().String(), to: to, whole: true, open: map[net.Conn]struct{}{}}
	l.wg.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			l.carry(in)
		}
	})
	t.Cleanup(func() { listener.Close(); l.cut(); l.wg.Wait() })
	return l
}

func (l *line) carry(in net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out, err := net.Dial("tcp", l.to)
	if err != nil || !l.whole {
		in.Close()
		if err == nil {
			out.Close()
		}
		return
	}
	l.open[in], l.open[out] = struct{}{}, struct{}{}
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		to.Close()
	}
	l.wg.Go(func() { pipe(in, out) })
	l.wg.Go(func() { pipe(out, in) })
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = false
	for c := range l.open {
		c.Close()
	}
	clear(l.open)
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = true
}

// never keeps the readings by the clock out of a test that is about the others.
func never(_ *Config, c *times) { c.reread = time.Hour }

func TestWhatWasPublishedWhileTheLineWasCut(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		l := newLine(t, addr)
		s := openVia(t, addr, l.addr, never)
		u := someID()
		token := s.token(u)
		accepted, pending := outcome(u, token, sale.Accepted), outcome(u, token, sale.PendingPayment)
		s.record(accepted)
		watching, other := s.login(u), s.login(u)
		watching.watch(token)
		watching.hearsOutcome(accepted)
		other.hearsOutcome(accepted)

		l.cut()
		s.record(pending)
		s.publish(pending)
		l.mend()
		watching.hearsOutcome(pending)
		other.hearsOutcome(pending)

		paid := outcome(u, token, sale.Paid)
		s.record(paid)
		s.publish(paid)
		watching.hearsOutcome(paid)
		watching.silent(s, u)
	})
}

func TestPubSubKilledByRedis(t *testing.T) {
	t.Parallel()
	s := open(t, stacktest.Redis(t), never)
	u := someID()
	token := s.token(u)
	accepted, pending := outcome(u, token, sale.Accepted), outcome(u, token, sale.PendingPayment)
	s.record(accepted)
	c := s.login(u)
	c.watch(token)
	c.hearsOutcome(accepted)
	s.killPubSub()
	s.record(pending)
	s.publish(pending)
	c.hearsOutcome(pending)
}

// killPubSub cuts this notifier's subscription alone: the server is everybody's.
func (s *shop) killPubSub() {
	s.t.Helper()
	list, err := s.rdb.Do(s.t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
	if err != nil {
		s.t.Fatal(err)
	}
	for l := range strings.Lines(list) {
		if !strings.Contains(l, " name="+s.name()+" ") {
			continue
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(l, "id="), " ")
		if n, err := s.rdb.ClientKillByFilter(s.t.Context(), "ID", id).Result(); err != nil || n != 1 {
			s.t.Fatalf("killed %d, %v", n, err)
		}
		return
	}
	s.t.Fatalf("no subscription of %s in %s", s.name(), list)
}

func TestAnOutcomeThatWasNeverPublished(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		s := open(t, addr, func(_ *Config, c *times) { c.reread = 50 * time.Millisecond })
		u := someID()
		token := s.token(u)
		c := s.login(u)
		for _, code := range []sale.Code{sale.Accepted, sale.PendingPayment, sale.Closed} {
			o := outcome(u, token, code)
			s.record(o)
			if code == sale.Accepted {
				c.watch(token)
			}
			c.hearsOutcome(o)
		}
	})
}

func TestAWatchWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	addr := miniredis.RunT(t).Addr()
	l := newLine(t, addr)
	s := openVia(t, addr, l.addr, func(_ *Config, c *times) { c.reread = 50 * time.Millisecond })
	u := someID()
	token := s.token(u)
	accepted := outcome(u, token, sale.Accepted)
	s.record(accepted)
	c := s.login(u)
	l.cut()
	c.watch(token)
	eventually(t, "not ready", func() bool { return s.n.Ready() != nil })
	l.mend()
	c.hearsOutcome(accepted)
	eventually(t, "ready again", func() bool { return s.n.Ready() == nil })
}

func TestManyTokensOfSeveralActivities(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		s := open(t, addr, func(c *Config, _ *times) { c.MaxWatches, c.Queue = 1000, 2000 })
		u := someID()
		c := s.login(u)
		one, two := s.activity, someID()
		want := map[sale.Token]bool{}
		for i := range 600 {
			s.activity = []sale.ID{one, two}[i%2]
			token := s.token(u)
			want[token] = true
			s.record(outcome(u, token, sale.Accepted))
			c.watch(token)
		}
		s.rdb.Expire(t.Context(), s.redisKey("res"), time.Minute)
		s.activity = one
		for len(want) > 0 {
			var got struct {
				RequestToken sale.Token
				Outcome      sale.Code
			}
			_ = c.ws.SetReadDeadline(time.Now().Add(patience))
			if err := c.ws.ReadJSON(&got); err != nil {
				t.Fatalf("%v with %d to come", err, len(want))
			}
			if !want[got.RequestToken] || got.Outcome != sale.Accepted {
				t.Fatalf("unwanted: %+v", got)
			}
			delete(want, got.RequestToken)
		}
	})
}

// An activity whose records cannot be read does not keep the watchers of others waiting.
func TestABrokenActivityHidesNoOther(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		s := open(t, addr, func(_ *Config, c *times) { c.reread = 50 * time.Millisecond })
		u := someID()
		sells := s.activity
		s.activity = sells - 1 // is read before
		broken := s.token(u)
		if err := s.rdb.HSet(t.Context(), s.redisKey("res"), string(broken), "not a record").Err(); err != nil {
			t.Fatal(err)
		}
		s.rdb.Expire(t.Context(), s.redisKey("res"), time.Minute)
		s.activity = sells
		c := s.login(u)
		c.watch(broken)
		token := s.token(u)
		for _, code := range []sale.Code{sale.Accepted, sale.PendingPayment} {
			o := outcome(u, token, code)
			s.record(o)
			if code == sale.Accepted {
				c.watch(token)
			}
			c.hearsOutcome(o)
		}
	})
}
