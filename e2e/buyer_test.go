package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"floodgate/sale"
)

// buyer is one person with one request token, stubborn as people are: it asks again with the same token until it knows.
type buyer struct {
	rig      *rig
	user     sale.ID
	jwt      string
	activity sale.ID
	item     sale.ID
	rng      *rand.Rand

	token    sale.Token
	told     string // the last answer to the order: accepted or a refusal
	accepted *atomic.Int64

	mu     sync.Mutex // guards what follows
	pushed []string   // outcomes by push, in order, without repeats
	heard  chan struct{}
}

func (r *rig) buyer(user, activity, item sale.ID, rng *rand.Rand, accepted *atomic.Int64) *buyer {
	jwt, err := r.signer.Sign(user, time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	return &buyer{rig: r, user: user, jwt: jwt, activity: activity, item: item, rng: rng, accepted: accepted, heard: make(chan struct{}, 1)}
}

// edge is the address of any of the edges.
func (b *buyer) edge() string {
	return "http://" + b.rig.procs[fmt.Sprintf("edge-%d", 1+b.rng.IntN(2))].addr["edge"]
}

// answer is whatever an edge may say to a buyer.
type answer struct {
	RequestToken sale.Token
	Outcome      string
	State        string
	OrderNo      string
	Error        struct{ Code string }
	Orders       []struct {
		OrderNo, State string
		RequestToken   sale.Token
	}
}

// buy asks until there is a final answer to the click; where it is accepted, the buyer has a promise.
func (b *buyer) buy(ctx context.Context) error {
	if !poll(ctx, 90*time.Second, func() bool {
		var a answer
		code := b.rig.call(ctx, http.MethodPost, fmt.Sprintf("%s/api/activities/%s/token", b.edge(), b.activity), b.jwt, []byte("{}"), &a)
		b.token = a.RequestToken
		return code == http.StatusOK
	}) {
		return fmt.Errorf("user %s: no request token", b.user)
	}
	body, _ := json.Marshal(map[string]any{"requestToken": b.token, "quantity": 1})
	if !poll(ctx, 90*time.Second, func() bool {
		var a answer
		code := b.rig.call(ctx, http.MethodPost, fmt.Sprintf("%s/api/activities/%s/items/%s/orders", b.edge(), b.activity, b.item), b.jwt, body, &a)
		switch {
		case code == http.StatusAccepted:
			b.told = a.Outcome
		case code == http.StatusConflict:
			b.told = a.Error.Code
		case code != 0 && code != http.StatusServiceUnavailable:
			b.told = fmt.Sprintf("HTTP %d %s", code, a.Error.Code)
		}
		return b.told != ""
	}) {
		return fmt.Errorf("user %s: no answer to the order", b.user)
	}
	if b.told == "accepted" {
		b.accepted.Add(1)
	}
	return nil
}

// listen holds a socket open until ctx ends, over any number of reconnects, and notes the outcomes of the buyer's token.
func (b *buyer) listen(ctx context.Context) {
	for ctx.Err() == nil {
		b.session(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(50+rand.IntN(200)) * time.Millisecond):
		}
	}
}

func (b *buyer) session(ctx context.Context) {
	d := websocket.Dialer{Subprotocols: []string{"floodgate.v1"}, HandshakeTimeout: 5 * time.Second}
	c, res, err := d.DialContext(ctx, "ws://"+b.rig.procs["notifier"].addr["notifier"]+"/ws", nil)
	if err != nil {
		return
	}
	res.Body.Close()
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	send := func(m map[string]string) bool { return c.WriteJSON(m) == nil }
	if !send(map[string]string{"type": "auth", "token": b.jwt}) || !send(map[string]string{"type": "watch", "requestToken": string(b.token)}) {
		return
	}
	for {
		var m struct {
			Type, Outcome string
			RequestToken  sale.Token
		}
		if c.ReadJSON(&m) != nil {
			return
		}
		if m.Type == "outcome" && m.RequestToken == b.token {
			b.hear(m.Outcome)
		}
	}
}

func (b *buyer) hear(outcome string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.pushed); n == 0 || b.pushed[n-1] != outcome {
		b.pushed = append(b.pushed, outcome)
	}
	select {
	case b.heard <- struct{}{}:
	default:
	}
}

// final is the last outcome by push, where it is one.
func (b *buyer) final() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.pushed); n > 0 && b.pushed[n-1] != "accepted" {
		return b.pushed[n-1]
	}
	return ""
}

// settle waits for the outcome of a buyer who was told accepted, and compares push, poll and the order list.
func (b *buyer) settle(ctx context.Context) error {
	if b.told != "accepted" {
		return nil
	}
	if !poll(ctx, 90*time.Second, func() bool { return b.final() != "" }) {
		return fmt.Errorf("user %s token %s was told accepted and heard %v: %w", b.user, b.token, b.pushed, errNoOutcome)
	}
	var polled, list answer
	if !poll(ctx, 30*time.Second, func() bool {
		return b.rig.call(ctx, http.MethodGet, b.edge()+"/api/requests/"+string(b.token), b.jwt, nil, &polled) == http.StatusOK && polled.Outcome != "accepted"
	}) {
		return fmt.Errorf("user %s token %s: the poll says %+v", b.user, b.token, polled)
	}
	if !poll(ctx, 30*time.Second, func() bool {
		return b.rig.call(ctx, http.MethodGet, b.edge()+"/api/orders", b.jwt, nil, &list) == http.StatusOK
	}) {
		return fmt.Errorf("user %s: no order list", b.user)
	}
	switch {
	case b.final() != "pending_payment" || polled.Outcome != b.final():
		return fmt.Errorf("user %s token %s was told accepted; push says %v, poll says %s", b.user, b.token, b.pushed, polled.Outcome)
	case len(list.Orders) != 1 || list.Orders[0].RequestToken != b.token || list.Orders[0].OrderNo != polled.OrderNo || list.Orders[0].State != polled.Outcome:
		return fmt.Errorf("user %s token %s: poll %+v, orders %+v", b.user, b.token, polled, list.Orders)
	}
	return nil
}
