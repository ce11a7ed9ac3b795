// Package load is a crowd of buyers that costs little: raw keep-alive connections, request bytes made beforehand, a reader
// that looks at the status line and the length alone, one goroutine a connection. It shares its cores with what it measures,
// so whatever it spends is missing there.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

const (
	firstBuffer = 2 << 10          // an answer of the edge has 200 to 600 bytes
	maxAnswer   = 256 << 10        // bytes of one answer; more is not what we asked for
	slowest     = 60 * time.Second // the histogram's upper end; whatever is slower counts as this
	dialWithin  = 5 * time.Second
	digits      = 2  // of a latency: within 1 %, and 20 KB a histogram, of which every connection has some
	kindsMax    = 16 // kinds of answers of one run
)

// ErrAnswer says that the server's bytes are no answer that we can read.
var ErrAnswer = errors.New("unreadable answer")

// Conn is one keep-alive connection with its own notes. It is one goroutine's.
type Conn struct {
	addr string
	mu   sync.Mutex // guards changes of net, which only the owner makes, against cut; and over
	net  net.Conn
	over bool // cut: no request is sent any more
	buf  []byte
	used int // bytes of buf that were read
	size int // bytes of the last answer in buf

	notes [kindsMax]*hdrhistogram.Histogram
	fails int
	last  time.Time // when the last note was made
}

// Do sends one request and reads its answer. The body is valid until the next Do. It connects where there is no connection; after
// an error there is none.
func (c *Conn) Do(request []byte) (status int, body []byte, err error) {
	if c.net == nil {
		if err = c.open(context.Background()); err != nil {
			return 0, nil, err
		}
	}
	if _, err = c.net.Write(request); err == nil {
		status, body, err = c.read()
	}
	if err != nil {
		c.Close()
	}
	return status, body, err
}

func (c *Conn) open(ctx context.Context) error {
	d := net.Dialer{Timeout: dialWithin}
	n, err := d.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		_ = n.Close()
		return net.ErrClosed
	}
	c.net, c.used, c.size = n, 0, 0
	return nil
}

// cut makes whoever waits for an answer give up. Any goroutine may call it.
func (c *Conn) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.net != nil {
		_ = c.net.SetDeadline(time.Now())
	}
}

// read takes one answer out of the connection.
func (c *Conn) read() (int, []byte, error) {
	if c.buf == nil {
		c.buf = make([]byte, firstBuffer)
	}
	c.used = copy(c.buf, c.buf[c.size:c.used]) // without pipelining nothing is left behind an answer
	for {
		status, head, length, err := parse(c.buf[:c.used])
		if err != nil {
			return 0, nil, err
		}
		if head > 0 && c.used >= head+length {
			c.size = head + length
			return status, c.buf[head:c.size], nil
		}
		if head+length > maxAnswer || c.used == maxAnswer {
			return 0, nil, fmt.Errorf("%w: more than %d bytes", ErrAnswer, maxAnswer)
		}
		if c.used == len(c.buf) || head+length > len(c.buf) {
			c.buf = append(make([]byte, 0, max(2*len(c.buf), head+length)), c.buf[:c.used]...)
			c.buf = c.buf[:cap(c.buf)]
		}
		n, err := c.net.Read(c.buf[c.used:])
		c.used += n
		if err != nil {
			return 0, nil, err
		}
	}
}

var (
	endOfHead    = []byte("\r\n\r\n")
	lengthHeader = []byte("\r\nContent-Length: ") // as fasthttp and net/http write it
	protocol     = []byte("HTTP/1.1 ")
)

// parse reads status, length of the head and length of the body; head is 0 while the head is not whole.
func parse(b []byte) (status, head, length int, err error) {
	end := bytes.Index(b, endOfHead)
	if end < 0 {
		return 0, 0, 0, nil
	}
	if len(b) < len(protocol)+3 || !bytes.Equal(b[:len(protocol)], protocol) {
		return 0, 0, 0, fmt.Errorf("%w: %.40q", ErrAnswer, b)
	}
	for _, d := range b[len(protocol) : len(protocol)+3] {
		status = status*10 + int(d-'0')
	}
	at := bytes.Index(b[:end], lengthHeader)
	if at < 0 || status < 200 || status > 599 {
		return 0, 0, 0, fmt.Errorf("%w: status %d, or no Content-Length", ErrAnswer, status)
	}
	for _, d := range b[at+len(lengthHeader) : end] {
		if d < '0' || d > '9' {
			break
		}
		if length = length*10 + int(d-'0'); length > maxAnswer {
			return 0, 0, 0, fmt.Errorf("%w: more than %d bytes", ErrAnswer, maxAnswer)
		}
	}
	return status, end + len(endOfHead), length, nil
}

// Note counts an answer of a kind (0..15, the caller's meaning) with how long it took.
func (c *Conn) Note(kind int, took time.Duration) {
	if c.notes[kind] == nil {
		c.notes[kind] = newHistogram()
	}
	// A stalled machine can only make it too long; clamped, it is still counted.
	_ = c.notes[kind].RecordValue(max(1, min(took, slowest).Microseconds()))
	c.last = time.Now()
}

// Fail counts a request without an answer.
func (c *Conn) Fail() { c.fails++ }

// Close ends the connection; Do opens a new one.
func (c *Conn) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.net != nil {
		_ = c.net.Close()
		c.net = nil
	}
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, slowest.Microseconds(), digits)
}

// Dial opens n connections to addr, at most width at once. The caller closes them.
func Dial(ctx context.Context, addr string, n, width int) ([]*Conn, error) {
	conns := make([]*Conn, n)
	for i := range conns {
		conns[i] = &Conn{addr: addr}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(width)
	for _, c := range conns {
		g.Go(func() error { return c.open(ctx) })
	}
	if err := g.Wait(); err != nil {
		for _, c := range conns {
			c.Close()
		}
		return nil, fmt.Errorf("cannot open %d connections: %w", n, err)
	}
	return conns, nil
}
