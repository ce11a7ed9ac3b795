// Package remoting speaks RocketMQ's wire protocol, as much of it as an order queue needs: requests with a deadline over one
// connection, and every request that waits fails at the moment its connection breaks. A frame is: length of the rest,
// length of the header (its top byte 0 means JSON), header, body.
package remoting

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	maxFrame = 32 << 20 // bytes; a broker's messages end at 4 MiB, and a pull is bounded far below this
	maxCalls = 4096     // requests that wait on one connection; more means that nobody reads the replies
	response = 1        // bit of the flag
)

// ErrClosed says that the connection has ended; whether the broker acted on the request is unknown.
var ErrClosed = errors.New("the connection has ended")

// Request is one request; Fields are those of the request's header.
type Request struct {
	Code   int
	Fields map[string]string
	Body   []byte
}

// Reply is what came back, whatever its code.
type Reply struct {
	Code   int
	Remark string
	Fields map[string]string
	Body   []byte
}

type header struct {
	Code     int               `json:"code"`
	Language string            `json:"language"`
	Version  int               `json:"version"`
	Opaque   int32             `json:"opaque"`
	Flag     int               `json:"flag"`
	Remark   string            `json:"remark,omitempty"`
	Fields   map[string]string `json:"extFields,omitempty"`
}

// conn is one connection and the requests that wait on it.
type conn struct {
	net  net.Conn
	turn chan struct{} // holds the token of whoever may write
	done chan struct{} // closed when the reader has ended

	mu      sync.Mutex // guards what follows
	waiting map[int32]chan<- Reply
	last    int32
	broken  error // why the connection has ended, nil while it lives
}

func dial(ctx context.Context, addr string) (*conn, error) {
	var d net.Dialer
	n, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &conn{net: n, turn: make(chan struct{}, 1), done: make(chan struct{}), waiting: map[int32]chan<- Reply{}}
	c.turn <- struct{}{}
	go c.read()
	return c, nil
}

// call sends a request and waits for its reply until ctx ends.
func (c *conn) call(ctx context.Context, r Request) (Reply, error) {
	reply := make(chan Reply, 1)
	id, err := c.expect(reply)
	if err != nil {
		return Reply{}, err
	}
	defer c.forget(id)
	if err := c.write(ctx, id, r); err != nil {
		return Reply{}, err
	}
	select {
	case got := <-reply:
		return got, nil
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	case <-c.done:
		return Reply{}, c.cause()
	}
}

func (c *conn) expect(reply chan<- Reply) (int32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.broken != nil:
		return 0, c.broken
	case len(c.waiting) >= maxCalls:
		return 0, fmt.Errorf("%d requests wait on one connection", maxCalls)
	}
	c.last++
	c.waiting[c.last] = reply
	return c.last, nil
}

func (c *conn) forget(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

func (c *conn) write(ctx context.Context, id int32, r Request) error {
	head, err := json.Marshal(header{Code: r.Code, Language: "GO", Opaque: id, Fields: r.Fields})
	if err != nil {
		return err
	}
	frame := make([]byte, 8, 8+len(head)+len(r.Body))
	binary.BigEndian.PutUint32(frame, uint32(4+len(head)+len(r.Body)))
	binary.BigEndian.PutUint32(frame[4:], uint32(len(head)))
	frame = append(append(frame, head...), r.Body...)
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return c.cause()
	}
	deadline, _ := ctx.Deadline() // the zero time is none
	c.net.SetWriteDeadline(deadline)
	if _, err := c.net.Write(frame); err != nil {
		c.end(err) // half a frame may be on its way: nothing can follow it
		return c.cause()
	}
	return nil
}

// read hands replies to whoever waits until the connection ends. What the broker asks of its clients is not answered: it expects nothing.
func (c *conn) read() {
	defer close(c.done)
	in := bufio.NewReaderSize(c.net, 64<<10)
	for {
		id, flag, reply, err := readFrame(in)
		if err != nil {
			c.end(err)
			return
		}
		if flag&response == 0 {
			continue
		}
		c.mu.Lock()
		if waiter := c.waiting[id]; waiter != nil {
			delete(c.waiting, id)
			waiter <- reply // has room for the only reply
		}
		c.mu.Unlock()
	}
}

func readFrame(in io.Reader) (id int32, flag int, reply Reply, err error) {
	var lengths [8]byte
	if _, err := io.ReadFull(in, lengths[:]); err != nil {
		return 0, 0, Reply{}, err
	}
	frame, head := binary.BigEndian.Uint32(lengths[:]), binary.BigEndian.Uint32(lengths[4:])
	if frame > maxFrame || head > frame-4 || frame < 4 {
		return 0, 0, Reply{}, fmt.Errorf("a frame of %d bytes with a header of %d", frame, head)
	}
	rest := make([]byte, frame-4)
	if _, err := io.ReadFull(in, rest); err != nil {
		return 0, 0, Reply{}, err
	}
	var h header
	if err := json.Unmarshal(rest[:head], &h); err != nil {
		return 0, 0, Reply{}, fmt.Errorf("unreadable header: %w", err)
	}
	return h.Opaque, h.Flag, Reply{Code: h.Code, Remark: h.Remark, Fields: h.Fields, Body: rest[head:]}, nil
}

// end breaks the connection; the first cause stands.
func (c *conn) end(cause error) {
	c.mu.Lock()
	if c.broken == nil {
		c.broken = fmt.Errorf("%w: %w", ErrClosed, cause)
	}
	c.mu.Unlock()
	c.net.Close()
}

func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

func (c *conn) alive() bool { return c.cause() == nil }

// dialTime bounds a dial where the caller has more patience: an address that is silent is tried anew.
const dialTime = time.Second
