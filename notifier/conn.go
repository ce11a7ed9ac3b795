package notifier

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"floodgate/sale"
)

// Kernel buffers for what is written. A small one shows soon that a client does not read and bounds what it costs;
// it grows when a slow one is sent away, so that its last frame and the close frame leave us without its help.
const (
	sendBuffer = 16 << 10
	lastBuffer = 128 << 10
)

// probeEvery is after how many frames a client must answer a ping: the kernels between us may take in all that is sent
// to a client that reads nothing. A buyer's page never comes so far between two ordinary pings.
const probeEvery = 128

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
	sent  int        // frames since the last pong
	asked time.Time  // when the ping of probeEvery was sent; zero: answered
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

// dropIfStuck is for a client that stopped reading though its queue never fills: a frame does not leave, or a ping
// behind many frames is not answered.
func (c *conn) dropIfStuck(patience time.Duration) {
	late := func(t time.Time) bool { return !t.IsZero() && time.Since(t) > patience }
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == nil && (late(c.since) || late(c.asked)) {
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
	if !c.probe() {
		return nil
	}
	return c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.n.times.write))
}

// probe counts a frame and says whether it is time for a ping.
func (c *conn) probe() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	if c.sent < probeEvery || !c.asked.IsZero() {
		return false
	}
	c.asked = time.Now()
	return true
}

// heard notes a pong.
func (c *conn) heard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent, c.asked = 0, time.Time{}
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
