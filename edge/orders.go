package edge

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"floodgate/sale"
)

const (
	ordersDefault = 20
	ordersMost    = 100
	orderBytes    = 1 << 20 // 100 orders have some 50 KB
	demoSession   = 12 * time.Hour
)

// listOrders passes on the user's own orders: GET /api/orders?limit&cursor.
func (e *Edge) listOrders(c *call) sale.Code {
	c.gate = gateOrders
	if !e.who(c) {
		return c.answer
	}
	query := c.http.QueryArgs()
	limit := ordersDefault
	if query.Has("limit") {
		n, err := strconv.Atoi(string(query.Peek("limit")))
		if err != nil || n < 1 || n > ordersMost {
			return sale.BadRequest
		}
		limit = n
	}
	path := "/internal/orders?user=" + c.user.String() + "&limit=" + strconv.Itoa(limit)
	if query.Has("cursor") {
		before, err := sale.ParseID(query.Peek("cursor"))
		if err != nil {
			return sale.BadRequest
		}
		path += "&before=" + before.String()
	}
	return e.passOn(c, path)
}

// showOrder passes on one of the user's own orders; somebody else's is as unknown as none.
func (e *Edge) showOrder(c *call, text []byte) sale.Code {
	c.gate = gateOrders
	if !e.who(c) {
		return c.answer
	}
	no, err := sale.ParseID(text)
	if err != nil {
		return sale.NotFound
	}
	return e.passOn(c, "/internal/orders/"+no.String()+"?user="+c.user.String())
}

// passOn answers with a worker's body, byte for byte.
func (e *Edge) passOn(c *call, path string) sale.Code {
	switch status, body := e.workers.get(e.work, path); status {
	case fasthttp.StatusOK:
		e.ok(c, body)
		return open
	case fasthttp.StatusNotFound:
		return sale.NotFound
	}
	return sale.Busy
}

// demoLogin gives anybody a token: POST /api/demo/login, only where demo is on.
func (e *Edge) demoLogin(c *call) sale.Code {
	c.gate = gateDemo
	var body struct {
		UserID sale.ID `json:"userId"`
	}
	if !readBody(c.http.PostBody(), &body) {
		return sale.BadRequest
	}
	if body.UserID == 0 {
		body.UserID = sale.ID(rand.Int64N(1<<63-1) + 1)
	}
	token, err := e.deps.Signer.Sign(body.UserID, demoSession)
	if err != nil {
		e.metrics.hear(err)
		return sale.Busy
	}
	e.okJSON(c, struct {
		Token  string  `json:"token"`
		UserID sale.ID `json:"userId"`
	}{token, body.UserID})
	return open
}

// workers asks the workers' order API, one after the other until one answers.
type workers struct {
	urls   []string
	next   atomic.Uint32
	client *http.Client
	signer RequestSigner
}

func newWorkers(cfg Config, signer RequestSigner) *workers {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // workers are ours
	transport.MaxIdleConnsPerHost = 64
	transport.MaxConnsPerHost = 256
	return &workers{urls: cfg.Workers, signer: signer, client: &http.Client{Transport: transport, Timeout: cfg.WorkerTimeout}}
}

// get gives the first worker's answer that is 200 or 404; status 0 says that none gave one.
func (w *workers) get(ctx context.Context, path string) (status int, body []byte) {
	first := w.next.Add(1)
	for i := range uint32(len(w.urls)) {
		url := w.urls[(first+i)%uint32(len(w.urls))]
		if status, body = w.ask(ctx, url+path); status == http.StatusOK || status == http.StatusNotFound {
			return status, body
		}
	}
	return 0, nil
}

func (w *workers) ask(ctx context.Context, url string) (int, []byte) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil
	}
	w.signer.SignRequest(r, nil)
	res, err := w.client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, orderBytes))
	if err != nil {
		return 0, nil
	}
	return res.StatusCode, body
}

func (w *workers) close() { w.client.CloseIdleConnections() }
