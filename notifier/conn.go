package notifier

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"floodgate/sale"
)

// Kernel buffers for what is written. A small one shows soon that a client does not read and bounds what it costs;
// it grows when a slow one is sent away, so that its last frame and the close frame leave us without its help.
const (
	sendBuffer = 16 << 10
	lastBuffer = 128 << 10
)

// Clients' messages: the burst is a page that watches and subscribes all it may; who sends more is read more slowly.
const (
	messagesPerSecond = 10
	messagesAtOnce    = 100
)

// conn is one connection: the goroutine of serve reads, one other writes (gorilla's panics with two), and everybody
// else only adds to its queue.
type conn struct {
	n   *Notifier
	hub *hub
	ws  *websocket.Conn

	user   sale.ID              // 0 until it has joined; guarded by hub.mu
	said   map[sale.Token]said  // guarded by hub.mu
	topics map[sale.ID]struct{} // guarded by board.mu

	wake chan struct{} // there is something for the writer
	gone chan struct{} // the reader has ended

	mu    sync.Mutex
	queue []*message // at most cfg.Queue
	since time.Time  // when the writer took what it is writing; zero: it writes nothing
	end   *closing
}

func newConn(n *Notifier, ws *websocket.Conn) *conn {
	return &conn{n: n, hub: n.hub, ws: ws, wake: make(chan struct{}, 1), gone: make(chan struct{})}
}

// serve lives as long as the connection. cookie is the user whom the cookie names, 0 for none.
func (c *conn) serve(ctx context.Context, cookie sale.ID) {
	defer c.hub.exit()
	defer c.ws.Close()
	c.hub.admit(c)
	defer c.hub.leave(c)
	defer c.n.board.leave(c)
	writer := make(chan struct{})
	go func() { defer close(writer); c.write() }()
	c.read(ctx, cookie)
	if !c.ending() {
		c.ws.Close() // the peer is gone, so a frame that is being written need not wait for its deadline
	}
	close(c.gone)
	<-writer
	c.linger()
	c.forget()
}

// send adds a message to the queue and never waits; a full queue ends the connection.
func (c *conn) send(m *message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return
	}
	if len(c.queue) >= c.hub.cfg.Queue {
		c.drop(1)
		return
	}
	c.queue = append(c.queue, m)
	c.hub.metrics.queued.Add(1)
	c.hub.metrics.fill.Observe(float64(len(c.queue)))
	signal(c.wake)
}

// drop ends a connection that is too slow, with all that waits for it and what came on top. Called under c.mu.
func (c *conn) drop(more int) {
	c.hub.metrics.dropped.Add(float64(len(c.queue) + more))
	c.hub.metrics.queued.Add(-int64(len(c.queue)))
	c.queue = nil
	c.finish(tooSlow)
	c.setWriteBuffer(lastBuffer)
}

// dropIfStuck is for a client that stopped reading when little was sent to it: its queue never fills.
func (c *conn) dropIfStuck(patience time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == nil && !c.since.IsZero() && time.Since(c.since) > patience {
		c.drop(0)
	}
}

// close ends the connection after what its queue holds. The first reason stands.
func (c *conn) close(why closing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == nil {
		c.finish(why)
	}
}

func (c *conn) finish(why closing) {
	c.end = &why
	c.hub.metrics.said(why)
	signal(c.wake)
}

func (c *conn) ending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end != nil
}

// forget empties the queue of a connection that nobody writes to any more.
func (c *conn) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hub.metrics.queued.Add(-int64(len(c.queue)))
	if c.queue = nil; c.end == nil {
		c.end = &closing{}
	}
}

func (c *conn) setWriteBuffer(bytes int) {
	if tcp, ok := c.ws.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(bytes) // a hint: without it only the write deadline ends a slow connection
	}
}

// next gives the writer a frame, or the reason to end once there is none.
func (c *conn) next() (*message, *closing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.queue, c.since = nil, time.Time{}
		return nil, c.end
	}
	m := c.queue[0]
	c.queue[0] = nil
	c.queue, c.since = c.queue[1:], time.Now()
	c.hub.metrics.queued.Add(-1)
	return m, nil
}

// write is the only writer. It ends with the connection closed, or with the close frame written.
func (c *conn) write() {
	ping := time.NewTicker(c.n.times.ping)
	defer ping.Stop()
	for {
		m, end := c.next()
		var err error
		switch {
		case m != nil:
			err = c.frame(m)
		case end != nil:
			err = c.farewell(end)
		default:
			select {
			case <-c.wake:
			case <-ping.C:
				err = c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.n.times.write))
			case <-c.gone:
				if !c.ending() {
					return
				}
			}
		}
		if err != nil {
			c.ws.Close() // ends the reader too
		}
		if err != nil || (m == nil && end != nil) {
			return
		}
	}
}

func (c *conn) frame(m *message) error {
	if err := c.ws.SetWriteDeadline(time.Now().Add(c.n.times.write)); err != nil {
		return err
	}
	if err := c.ws.WriteMessage(websocket.TextMessage, m.data); err != nil {
		return err
	}
	c.hub.metrics.written(m)
	return nil
}

// farewell writes the close frame and gives the client a moment to answer it.
func (c *conn) farewell(end *closing) error {
	deadline := time.Now().Add(c.n.times.linger)
	if err := c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(end.code, end.reason), deadline); err != nil {
		return err
	}
	return c.ws.SetReadDeadline(deadline)
}

// linger reads on until the client has answered our close frame or its deadline: a socket that is closed with bytes
// unread is reset, and the client might never see why.
func (c *conn) linger() {
	for {
		if _, _, err := c.ws.NextReader(); err != nil {
			return
		}
	}
}

// receive reads one message of the client of at most limit bytes. An error other than errBadMessage is the peer's end.
func (c *conn) receive(limit int64) (request, error) {
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return request{}, err
	}
	if kind != websocket.TextMessage {
		return request{}, errBadMessage
	}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return request{}, err
	case int64(len(b)) > limit:
		return request{}, errBadMessage
	}
	return readRequest(b)
}

// read takes the client's messages until either side ends the connection.
func (c *conn) read(ctx context.Context, user sale.ID) {
	if c.ending() {
		return
	}
	c.ws.SetReadLimit(2 * maxFirstMessage) // receive refuses earlier, with our own code
	if user == 0 {
		var ok bool
		if user, ok = c.authenticate(); !ok {
			return
		}
	}
	if !c.hub.join(c, user) {
		c.close(tooMany)
		return
	}
	alive := func(string) error {
		if c.ending() {
			return nil // the close frame has a deadline of its own
		}
		return c.ws.SetReadDeadline(time.Now().Add(c.n.times.pong))
	}
	c.ws.SetPongHandler(alive)
	pace := rate.NewLimiter(messagesPerSecond, messagesAtOnce)
	for err := alive(""); err == nil; err = pace.Wait(ctx) {
		in, err := c.receive(maxMessage)
		if errors.Is(err, errBadMessage) {
			c.close(badMessage)
		}
		if err != nil || !c.obey(in) {
			return
		}
	}
	c.close(restarting(c.hub.cfg.RestartSpread)) // ctx has ended
}

// authenticate waits for the first message, which must be a valid auth.
func (c *conn) authenticate() (sale.ID, bool) {
	if c.ws.SetReadDeadline(time.Now().Add(c.n.times.auth)) != nil {
		return 0, false
	}
	in, err := c.receive(maxFirstMessage)
	var late net.Error
	switch {
	case errors.Is(err, errBadMessage):
		c.close(badMessage)
		return 0, false
	case errors.As(err, &late) && late.Timeout():
		c.close(unauthorized)
		return 0, false
	case err != nil:
		return 0, false // the peer went away
	}
	u, err := c.n.deps.Verifier.Verify(in.Token)
	if in.Type != "auth" || err != nil {
		c.close(unauthorized)
		return 0, false
	}
	return u.ID, true
}

// obey does what a message asks for; false where the connection ends.
func (c *conn) obey(in request) bool {
	switch in.Type {
	case "auth":
		return c.authAgain(in.Token)
	case "watch":
		return c.watch(in.RequestToken)
	case "subscribe":
		if !c.n.board.join(c, in.ActivityID) {
			c.send(errorMessage(refusal{Code: sale.BadRequest, Activity: in.ActivityID, Message: "too many subscriptions on this connection"}))
		}
		return true
	}
	c.close(badMessage)
	return false
}

// authAgain answers a client that sends auth though its cookie was enough, or that does not know whether it did.
func (c *conn) authAgain(token string) bool {
	u, err := c.n.deps.Verifier.Verify(token)
	switch {
	case err != nil:
		c.close(unauthorized)
	case u.ID != c.user:
		c.close(forbiddenToken)
	default:
		c.send(readyMessage(u.ID, now()))
		return true
	}
	return false
}

func (c *conn) watch(t sale.Token) bool {
	claims, err := c.n.deps.TokenKey.Parse(t)
	switch {
	case err != nil:
		c.send(errorMessage(refusal{Code: sale.BadRequestToken}))
	case claims.User != c.user:
		c.close(forbiddenToken)
		return false
	case !c.hub.watch(c, t):
		c.send(errorMessage(refusal{Code: sale.BadRequest, Token: t, Message: "too many unfinished tokens watched on this connection"}))
	}
	return true
}
