package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/gorilla/websocket"
	"golang.org/x/sync/errgroup"

	"floodgate/sale"
)

// sockets are the buyers' WebSockets: each user's own, opened before it buys, so that an outcome is truly pushed.
type sockets struct {
	s    *shop
	addr string

	owned sync.WaitGroup
	mu    sync.Mutex // guards what follows
	conns map[sale.ID]*websocket.Conn
	told  map[sale.Token]time.Time // when the buyer read its 202
	heard map[sale.Token]time.Time // when the outcome was pushed
}

func (s *shop) sockets(notifier string) *sockets {
	return &sockets{s: s, addr: s.addr[notifier], conns: map[sale.ID]*websocket.Conn{}, told: map[sale.Token]time.Time{}, heard: map[sale.Token]time.Time{}}
}

// openAll opens a socket for each of the users, 32 at once.
func (w *sockets) openAll(ctx context.Context, users []*buyer) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for _, u := range users {
		g.Go(func() error {
			_, err := w.open(ctx, u)
			return err
		})
	}
	return g.Wait()
}

// open opens a user's socket and reads it until close.
func (w *sockets) open(ctx context.Context, u *buyer) (*websocket.Conn, error) {
	d := websocket.Dialer{Subprotocols: []string{"floodgate.v1"}, HandshakeTimeout: 10 * time.Second, ReadBufferSize: 1024, WriteBufferSize: 512}
	c, res, err := d.DialContext(ctx, "ws://"+w.addr+"/ws", nil)
	if err != nil {
		return nil, fmt.Errorf("cannot open a socket: %w", err)
	}
	res.Body.Close()
	if err := c.WriteJSON(map[string]string{"type": "auth", "token": u.jwt}); err != nil {
		c.Close()
		return nil, err
	}
	_, first, err := c.ReadMessage()
	if err != nil || !bytes.Contains(first, []byte(`"type":"ready"`)) {
		c.Close()
		return nil, fmt.Errorf("the notifier said %s (%v), want ready", first, err)
	}
	w.mu.Lock()
	w.conns[u.user] = c
	w.mu.Unlock()
	w.owned.Go(func() { w.read(c) })
	return c, nil
}

// watch asks for a token's outcome over a socket that is opened only now, by a winner who had none.
func (w *sockets) watch(ctx context.Context, u *buyer) error {
	c, err := w.open(ctx, u)
	if err != nil {
		return err
	}
	return c.WriteJSON(map[string]string{"type": "watch", "requestToken": string(u.token)})
}

// read notes every final outcome until the socket is closed.
func (w *sockets) read(c *websocket.Conn) {
	defer c.Close()
	for {
		_, text, err := c.ReadMessage()
		if err != nil {
			return
		}
		now := time.Now()
		var m struct {
			Type         string
			RequestToken sale.Token
			Outcome      sale.Code
		}
		if json.Unmarshal(text, &m) != nil || m.Type != "outcome" || !m.Outcome.Final() {
			continue
		}
		w.mu.Lock()
		if _, again := w.heard[m.RequestToken]; !again {
			w.heard[m.RequestToken] = now
		}
		w.mu.Unlock()
	}
}

// accepted notes that a buyer has read its 202 now.
func (w *sockets) accepted(u *buyer) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, again := w.told[u.token]; !again {
		w.told[u.token] = now
	}
}

// has says whether the user has a socket.
func (w *sockets) has(user sale.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conns[user] != nil
}

// missing are the accepted tokens whose outcome has not been pushed.
func (w *sockets) missing() (out []sale.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for token := range w.told {
		if _, ok := w.heard[token]; !ok {
			out = append(out, token)
		}
	}
	return out
}

// waits is how long each outcome took, from the 202 to the push; one that came before its 202 took nothing. only: sockets that were
// open before the purchase.
func (w *sockets) waits(only func(sale.Token) bool) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, time.Minute.Microseconds(), 2)
	w.mu.Lock()
	defer w.mu.Unlock()
	for token, told := range w.told {
		if heard, ok := w.heard[token]; ok && only(token) {
			_ = h.RecordValue(min(max(1, heard.Sub(told).Microseconds()), time.Minute.Microseconds()))
		}
	}
	return h
}

// settle waits until every accepted buyer has its outcome by push; who has none after that is asked for by poll. It returns how many
// have none at all, and how many had to poll.
func (w *sockets) settle(ctx context.Context, byToken map[sale.Token]*buyer, edge string, within time.Duration) (none, polled int64) {
	_ = eventually(ctx, within, "every outcome is pushed", func() bool { return len(w.missing()) == 0 })
	for _, token := range w.missing() {
		var r struct{ Outcome sale.Code }
		u := byToken[token]
		if u != nil && w.s.get(ctx, "http://"+edge+"/api/requests/"+string(token), u.jwt, &r) == http.StatusOK && r.Outcome.Final() {
			polled++
			continue
		}
		none++
	}
	return none, polled
}

// close ends all sockets and waits for their readers.
func (w *sockets) close() {
	w.mu.Lock()
	for _, c := range w.conns {
		c.Close()
	}
	w.mu.Unlock()
	w.owned.Wait()
}
