package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers each connection by a function until the test ends.
func serve(t *testing.T, each func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); each(c) }()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// answers reads requests and answers each with the same bytes, written in pieces.
func answers(pieces ...string) func(net.Conn) {
	return func(c net.Conn) {
		for r := bufio.NewReader(c); ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			for _, p := range pieces {
				if _, err := io.WriteString(c, p); err != nil {
					return
				}
			}
		}
	}
}

var request = []byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n")

func TestParse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 12)
	for text, want := range map[string]struct {
		status, head, length int
		bad                  bool
	}{
		"":                              {},
		"HTTP/1.1 200 OK\r\nContent-Le": {},
		"HTTP/1.1 202 Accepted\r\nContent-Length: 12\r\n\r\n":                {202, 45, 12, false},
		"HTTP/1.1 409 Conflict\r\nX: y\r\nContent-Length: 0\r\nA: b\r\n\r\n": {409, 56, 0, false},
		"HTTP/1.1 200 OK\r\n\r\n":                                            {bad: true},
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n":                       {bad: true},
		"HTTP/1.1 100 Continue\r\nContent-Length: 1\r\n\r\n":                 {bad: true},
		"HTTP/1.1 2x0 OK\r\nContent-Length: 1\r\n\r\n":                       {bad: true},
		"HTTP/1.1 200 OK\r\nContent-Length: " + long + "\r\n\r\n":            {bad: true},
		"junk\r\n\r\n": {bad: true},
	} {
		status, head, length, err := parse([]byte(text))
		if (err != nil) != want.bad || err == nil && (status != want.status || head != want.head || length != want.length) {
			t.Errorf("%q: %d %d %d %v, want %+v", text, status, head, length, err, want)
		}
		if err != nil && !errors.Is(err, ErrAnswer) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestConnReadsInPieces(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("b", 3*firstBuffer)
	c := &Conn{addr: serve(t, answers("HTTP/1.1 200 OK\r\nContent-", fmt.Sprintf("Length: %d\r\n\r\n", len(body)), body[:7], body[7:]))}
	defer c.Close()
	for range 3 { // the same connection, again and again
		status, got, err := c.Do(request)
		if err != nil || status != 200 || string(got) != body {
			t.Fatalf("%d, %d bytes, %v", status, len(got), err)
		}
	}
}

func TestConnConnectsAgain(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	c := &Conn{addr: serve(t, func(c net.Conn) {
		if n.Add(1) > 1 {
			answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(c)
		}
	})}
	defer c.Close()
	if _, _, err := c.Do(request); err == nil {
		t.Fatal("a closed connection gave an answer")
	}
	if status, _, err := c.Do(request); err != nil || status != 200 {
		t.Fatalf("%d %v after the server came back", status, err)
	}
}

func TestCrowdMergesAllConnections(t *testing.T) {
	t.Parallel()
	addr := serve(t, answers("HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"))
	tally := Crowd{Addr: addr, Connections: 8, Count: 400}.Run(t.Context(), func(c *Conn, n int, due time.Time) {
		if _, _, err := c.Do(request); err != nil {
			c.Fail()
			return
		}
		c.Note(n%2, time.Duration(n+1)*time.Millisecond)
	})
	if tally.Turns != 400 || tally.Fails != 0 || tally.Count(0) != 200 || tally.Count(1) != 200 {
		t.Fatalf("%d turns, %d fails, %d and %d", tally.Turns, tally.Fails, tally.Count(0), tally.Count(1))
	}
	if p := tally.Millis(0, 50); p < 195 || p > 205 {
		t.Errorf("the median of 1, 3, … 399 ms is %v", p)
	}
	if p := tally.Millis(1, 100); p < 396 || p > 404 {
		t.Errorf("the highest is %v, want 400 within 1 %%", p)
	}
	if tally.Rate(0) <= 0 {
		t.Error("no rate")
	}
}

func TestCrowdKeepsItsRate(t *testing.T) {
	t.Parallel()
	addr := serve(t, answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	began := time.Now()
	tally := Crowd{Addr: addr, Connections: 4, Count: 1000, Rate: 100, For: 300 * time.Millisecond}.Run(t.Context(), func(c *Conn, n int, due time.Time) {
		if early := due.Sub(began) - time.Duration(n)*10*time.Millisecond; early < 0 || time.Now().Before(due) {
			t.Errorf("turn %d began %v off", n, early)
		}
		_, _, _ = c.Do(request)
		c.Note(0, time.Since(due))
	})
	if tally.Count(0) != 30 {
		t.Errorf("%d turns in 300 ms at 100 a second", tally.Count(0))
	}
}

// A server that falls silent holds nobody: the end of the context breaks the connections.
func TestCrowdEndsWithItsContext(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{}, 8)
	addr := serve(t, func(c net.Conn) { heard <- struct{}{}; _, _ = io.Copy(io.Discard, c) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-heard; cancel() }()
	tally := Crowd{Addr: addr, Connections: 2, Count: 10}.Run(ctx, func(c *Conn, _ int, _ time.Time) {
		if _, _, err := c.Do(request); err != nil {
			c.Fail()
		}
	})
	if tally.Fails == 0 || tally.Fails > 4 {
		t.Errorf("%d fails", tally.Fails)
	}
}

func TestDial(t *testing.T) {
	t.Parallel()
	addr := serve(t, answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	conns, err := Dial(t.Context(), addr, 50, 8)
	if err != nil || len(conns) != 50 {
		t.Fatal(len(conns), err)
	}
	for _, c := range conns {
		if status, _, err := c.Do(request); err != nil || status != 200 {
			t.Error(status, err)
		}
		c.Close()
	}
	if _, err := Dial(t.Context(), "127.0.0.1:1", 2, 2); err == nil {
		t.Error("nobody listens, and it connects")
	}
}
