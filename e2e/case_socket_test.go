package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"floodgate/sale"
)

// said is whatever the notifier may say.
type said struct {
	Type, Outcome, OrderNo, Code, UserID string
	RequestToken                         sale.Token
	At                                   int64
	Items                                []shownItem
}

// socket is one WebSocket of somebody.
type socket struct {
	rig *rig
	ws  *websocket.Conn
}

// dial opens a WebSocket and says nothing.
func (r *rig) dial(h http.Header, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *socket {
	r.t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"floodgate.v1"}, HandshakeTimeout: 10 * time.Second, NetDialContext: dial}
	ws, res, err := d.Dial("ws://"+r.procs["notifier"].addr["notifier"]+"/ws", h)
	if err != nil {
		r.t.Fatalf("cannot open a socket: %v", err)
	}
	res.Body.Close()
	return &socket{r, ws}
}

// socket opens one and logs in.
func (r *rig) socket(jwt string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *socket {
	r.t.Helper()
	s := r.dial(nil, dial)
	s.say("auth", "token", jwt)
	var m said
	_ = s.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	if err := s.ws.ReadJSON(&m); err != nil || m.Type != "ready" {
		r.t.Fatalf("a socket is not ready: %+v %v", m, err)
	}
	_ = s.ws.SetReadDeadline(time.Time{})
	return s
}

func (s *socket) say(kind string, more ...string) {
	m := map[string]string{"type": kind}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	if err := s.ws.WriteJSON(m); err != nil {
		s.rig.t.Errorf("cannot send %s: %v", kind, err)
	}
}

// hear reads until the socket ends and returns its close code; 0 is an end without one.
func (s *socket) hear(each func(said)) int {
	for {
		var m said
		if err := s.ws.ReadJSON(&m); err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) {
				return closed.Code
			}
			return 0
		}
		each(m)
	}
}

// closes reads until the socket ends, which it must within 10 s.
func (s *socket) closes(each func(said)) int {
	_ = s.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	return s.hear(each)
}

// metric is a value that a process shows, all labels that begin so added up.
func (r *rig) metric(process, name string) (sum float64) {
	r.t.Helper()
	res, err := r.client.Get("http://" + r.procs[process].addr["console"] + "/metrics")
	if err != nil {
		r.t.Errorf("metrics of %s: %v", process, err)
		return 0
	}
	defer res.Body.Close()
	for s := bufio.NewScanner(res.Body); s.Scan(); {
		label, value, _ := strings.Cut(s.Text(), " ")
		if label == name || strings.HasPrefix(label, name+"{") {
			v, _ := strconv.ParseFloat(value, 64)
			sum += v
		}
	}
	return sum
}

// What case 53 is made of: two hundred connections, as many a user as one may have, and 2000 orders. Each of a user's
// connections hears all of the user's outcomes, and the stock of eighty items beside them.
const (
	people53  = 25
	sockets53 = 8
	items53   = 80
)

// One of two hundred connections stops reading while 2000 orders are placed: it alone is given up.
func case53(r *rig) {
	totals := map[sale.ID]int64{}
	for i := range items53 {
		totals[sale.ID(i+1)] = 100
	}
	activity := r.offer(offer{totals: totals})
	buyers := make([]*person, people53)
	for i := range buyers {
		buyers[i] = r.person()
	}
	r.metric("notifier", "go_goroutines") // its own connection is one of those that stand before
	goroutines := r.metric("notifier", "go_goroutines")
	heap := r.metric("notifier", "go_memstats_heap_inuse_bytes")
	slow := r.socket(buyers[0].jwt, smallWindow) // never read from again until it is given up
	slow.say("subscribe", "activityId", activity.String())
	slow.ws.SetPingHandler(func(string) error { return nil }) // an answer would find nobody, and the reset take the close frame along
	w := &watched{each: map[*socket]int{}}
	var open []*socket
	for i := 1; i < people53*sockets53; i++ {
		s := r.socket(buyers[i/sockets53].jwt, nil)
		if i%sockets53 == 0 { // as the page of one of a buyer's tabs; all would only measure this test's reading
			s.say("subscribe", "activityId", activity.String())
		}
		open = append(open, s)
		w.reading.Go(func() { w.read(s) })
	}
	began, givenUp, closed := time.Now(), make(chan time.Time, 1), make(chan int, 1)
	w.reading.Go(func() {
		poll(context.Background(), time.Minute, func() bool {
			return r.metric("notifier", `floodgate_notifier_closed_total{code="4008"}`) == 1
		})
		givenUp <- time.Now()
		closed <- slow.closes(func(said) {})
	})
	for item := range totals {
		got := crowd(people53, func(i int) reply {
			a, _ := buyers[i].early(at(i), activity, item)
			return a
		})
		r.told("item "+item.String(), got, map[string]int{"accepted": people53})
	}
	r.t.Logf("%d orders accepted in %s", people53*items53, time.Since(began).Round(time.Millisecond))
	r.eventually(30*time.Second, "everybody else has heard every outcome", func() bool {
		return w.count() >= (people53*sockets53-1)*items53
	})
	heard, gone := time.Now(), <-givenUp
	r.t.Logf("all heard %s after the first order; the slow one was given up after %s", heard.Sub(began).Round(time.Millisecond), gone.Sub(began).Round(time.Millisecond))
	if gone.Sub(heard) > 10*time.Second {
		r.t.Errorf("the slow one was given up %s after the last outcome", gone.Sub(heard))
	}
	equal(r, "the slow one's close code", <-closed, 4008)
	worst, each := w.verdict()
	r.t.Logf("%d outcomes heard, the slowest %s after it was settled", w.count(), worst)
	if worst > time.Second*slack {
		r.t.Errorf("an outcome was heard %s after it was settled", worst)
	}
	for _, s := range open {
		equal(r, "outcomes of a connection", each[s], items53)
		s.ws.Close()
	}
	slow.ws.Close()
	w.reading.Wait()
	equal(r, "connections that were given up", r.metric("notifier", `floodgate_notifier_closed_total{code="4008"}`), 1)
	left := time.Now()
	for name, most := range map[string]float64{"go_goroutines": goroutines + 5, "floodgate_notifier_connections": 0, "floodgate_notifier_queue_messages": 0} {
		r.eventually(15*time.Second, fmt.Sprintf("%s returns to %v", name, most), func() bool { return r.metric("notifier", name) <= most })
	}
	r.eventually(20*time.Second, "the heap returns", func() bool { return r.metric("notifier", "go_memstats_heap_inuse_bytes") < heap+8<<20 })
	r.t.Logf("all is as before %s after the last socket closed", time.Since(left).Round(time.Millisecond))
	r.books(activity)
}

// smallWindow dials with a small buffer, so that the other side soon notices that nothing is read.
func smallWindow(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4096)
	}
	return c, err
}

// watched is what many sockets hear.
type watched struct {
	reading sync.WaitGroup

	mu    sync.Mutex // guards what follows
	each  map[*socket]int
	heard int
	worst time.Duration
}

// read counts the outcomes of a socket, each token once, with how long each was on its way.
func (w *watched) read(s *socket) {
	seen := map[sale.Token]bool{}
	for {
		_, text, err := s.ws.ReadMessage()
		if err != nil {
			return
		}
		var m said
		if !bytes.HasPrefix(text, []byte(`{"type":"outcome"`)) || json.Unmarshal(text, &m) != nil || m.Outcome != "pending_payment" || seen[m.RequestToken] {
			continue
		}
		seen[m.RequestToken] = true
		w.note(s, time.Since(time.UnixMilli(m.At)))
	}
}

func (w *watched) note(s *socket, late time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.each[s]++
	w.heard++
	w.worst = max(w.worst, late)
}

func (w *watched) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard
}

func (w *watched) verdict() (time.Duration, map[*socket]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.worst, w.each
}
