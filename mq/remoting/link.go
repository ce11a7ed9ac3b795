package remoting

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Link is the way to one address: a connection that is made when it is needed, and anew after it broke. Safe for concurrent use.
type Link struct {
	addr string
	turn chan struct{} // holds the token of whoever may dial

	mu     sync.Mutex // guards what follows
	conn   *conn
	closed bool
}

// NewLink makes no connection yet.
func NewLink(addr string) *Link {
	l := &Link{addr: addr, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// Call sends a request and waits for its reply until ctx ends. An error means that the broker may or may not have acted.
func (l *Link) Call(ctx context.Context, r Request) (Reply, error) {
	c, err := l.connect(ctx)
	if err != nil {
		return Reply{}, fmt.Errorf("cannot reach %s: %w", l.addr, err)
	}
	reply, err := c.call(ctx, r)
	if err != nil {
		return Reply{}, fmt.Errorf("no reply of %s: %w", l.addr, err)
	}
	return reply, nil
}

func (l *Link) connect(ctx context.Context) (*conn, error) {
	if c, err := l.current(); c != nil || err != nil {
		return c, err
	}
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c, err := l.current(); c != nil || err != nil { // made while we waited
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	c, err := dial(ctx, l.addr)
	if err != nil {
		return nil, err
	}
	return c, l.adopt(c)
}

// current is the connection where it lives, nil where one must be made.
func (l *Link) current() (*conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if l.conn != nil && l.conn.alive() {
		return l.conn, nil
	}
	return nil, nil
}

func (l *Link) adopt(c *conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.end(ErrClosed)
		<-c.done
		return ErrClosed
	}
	l.conn = c
	return nil
}

var errReset = errors.New("given up, since it was silent")

// Reset breaks the connection, so that the next call makes a new one: a peer that is silent may be gone without a word, and its
// connection would stay silent for minutes after the peer is back. Whoever waits gets an error. It does not block.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.end(errReset)
	}
}

// Close breaks the connection for good and waits for its reader.
func (l *Link) Close() {
	l.mu.Lock()
	c := l.conn
	l.closed = true
	l.mu.Unlock()
	if c != nil {
		c.end(errors.New("closed by us"))
		<-c.done
	}
}
