package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"floodgate/deploy/stacktest"
	"floodgate/sale"
)

// laggard is a proxy in front of Redis that spoils what Redis answers to some requests. Redis has done by then what was asked.
type laggard struct {
	to string
	l  net.Listener

	mu    sync.Mutex // guards what follows
	about []byte     // requests that name this
	times int        // so many of them
	delay time.Duration
	cut   bool // the line instead of a delay
}

func newLaggard(t *testing.T, to string) *laggard {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &laggard{to: to, l: l}
	var lines sync.WaitGroup
	lines.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			lines.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); lines.Wait() }) // its clients have been stopped before
	return p
}

// spoil arms the proxy for the next requests that name a text.
func (p *laggard) spoil(about string, times int, delay time.Duration, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.about, p.times, p.delay, p.cut = []byte(about), times, delay, cut
}

// spoiled says what becomes of the answer to a request.
func (p *laggard) spoiled(request []byte) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.times == 0 || !bytes.Contains(request, p.about) {
		return 0, false
	}
	p.times--
	return p.delay, p.cut
}

// serve carries one connection, a request and its answer at a time as the client sends them.
func (p *laggard) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	fates := make(chan func(), 1024) // of what was asked, for the answers' side
	var back sync.WaitGroup
	defer back.Wait()
	defer server.Close()
	back.Go(func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			select {
			case fate := <-fates:
				fate()
			default:
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		switch delay, cut := p.spoiled(buf[:n]); {
		case cut:
			fates <- func() { client.Close() }
		case delay > 0:
			fates <- func() { <-time.After(delay) }
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// Redis does what it is asked and answers too late, or never: asking again is safe, giving back is not.
func case09(r *rig) {
	proxy := newLaggard(r.t, r.stack.Var("FLOODGATE_REDIS_ADDRS"))
	workers := r.procs["worker-1"].addr["worker"] + "," + r.procs["worker-2"].addr["worker"]
	r.start("edge-3", "edge", map[string]string{"edge": freePort(r.t)}, "edge.workers="+workers, "redis.addrs="+proxy.l.Addr().String())
	defer func() {
		r.procs["edge-3"].stop()
		delete(r.procs, "edge-3")
	}()
	activity := r.activity(map[sale.ID]int64{1: 10})
	r.shown(activity, "edge-3")
	const late = 700 * time.Millisecond // reserve_timeout is 300 ms, and there are three tries
	taken := int64(0)
	for _, c := range []struct {
		name  string
		times int
		cut   bool
		want  string
	}{
		{"the first answer comes too late", 1, false, "accepted"},
		{"the first two come too late", 2, false, "accepted"},
		{"all three come too late", 3, false, "busy"},
		{"the line breaks before the first answer", 1, true, "accepted"},
		{"the line breaks three times", 3, true, "busy"},
	} {
		p := r.person()
		token := p.token(activity)
		buy := func(edge string) string {
			return p.send(edge, "POST", buyPath(activity, 1), buyBody(token, 1)).code()
		}
		proxy.spoil(string(token), c.times, late, c.cut)
		equal(r, c.name, buy("edge-3"), c.want)
		equal(r, c.name+", asked again", buy("edge-3"), "accepted")
		equal(r, c.name+", asked again elsewhere", buy("edge-1"), "accepted")
		equal(r, c.name+", outcome", p.final("edge-3", token, 60*time.Second).code(), "pending_payment")
		taken++
		equal(r, c.name+", Redis holds", r.redisStock(activity, 1), fmt.Sprint(10-taken))
		other, _ := p.buy("edge-3", activity, 1, 1)
		equal(r, c.name+", another token", other.code(), "duplicate")
	}
	equal(r, "remaining", r.books(activity)[1].Remaining, 10-taken)
	equal(r, "rows", r.rows(activity, ""), int(taken))
}

// Scripts are flushed again and again while a thousand buy: nobody notices.
func case41(r *rig) {
	const many, total = 1000, 2000
	activity := r.activity(map[sale.ID]int64{1: total})
	turns := make(chan int, many)
	for i := range many {
		turns <- i
	}
	close(turns)
	var mu sync.Mutex
	told := map[string]int{}
	began := time.Now()
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for i := range turns {
				if i%50 == 25 {
					if err := r.rdb.ScriptFlush(context.Background()).Err(); err != nil {
						r.t.Error(err)
					}
				}
				a, _ := r.person().early(at(i), activity, 1)
				mu.Lock()
				told[fmt.Sprint(a.status, " ", a.code())]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	r.t.Logf("%d buys in %s", many, time.Since(began).Round(time.Millisecond))
	r.told("a thousand", told, map[string]int{"202 accepted": many})
	equal(r, "remaining", r.books(activity)[1].Remaining, total-many)
	equal(r, "rows", r.rows(activity, "AND state = 0"), many)
}

// Everything dies at once with orders in the queue, and comes back: what was taken is taken, what was promised is placed.
func case14b(r *rig) {
	activity := r.activity(map[sale.ID]int64{1: 100})
	var taken []promise
	for i := range 30 {
		taken = append(taken, r.accepted(at(i), activity, 1))
	}
	r.books(activity)
	r.procs["worker-1"].kill()
	r.procs["worker-2"].kill()
	for i := range 10 {
		taken = append(taken, r.accepted(at(i), activity, 1))
	}
	equal(r, "rows before", r.rows(activity, ""), 30)
	began := time.Now()
	parts := []string{stacktest.PartRedis, stacktest.PartBroker, stacktest.PartNameServer, stacktest.PartMariaDB}
	for _, name := range []string{"edge-1", "edge-2", "notifier", "console"} {
		r.procs[name].kill()
	}
	for _, part := range parts {
		r.stack.Kill(part)
	}
	for _, part := range []string{stacktest.PartNameServer, stacktest.PartBroker, stacktest.PartMariaDB, stacktest.PartRedis} {
		r.stack.Start(part)
	}
	for _, name := range []string{"worker-1", "worker-2", "notifier", "edge-1", "edge-2", "console"} {
		r.procs[name].run()
	}
	r.t.Logf("all is back after %s", time.Since(began).Round(time.Millisecond))
	r.shown(activity, "edge-1", "edge-2")
	for i, p := range taken {
		equal(r, "an order of before", p.by.final(at(i), p.token, 60*time.Second).code(), "pending_payment")
	}
	s := r.books(activity)[1]
	equal(r, "remaining", s.Remaining, 60)
	equal(r, "live", s.LiveUnits, 40)
	var last promise
	r.eventually(20*time.Second, "the sale goes on", func() bool {
		p := r.person()
		a, token := p.early("edge-2", activity, 1)
		last = promise{p, token}
		return a.code() == "accepted"
	})
	equal(r, "a new order", last.by.final("edge-1", last.token, 30*time.Second).code(), "pending_payment")
	equal(r, "duplicate", func() string { a, _ := taken[35].by.buy("edge-1", activity, 1, 1); return a.code() }(), "duplicate")
	equal(r, "remaining", r.books(activity)[1].Remaining, 59)
}
