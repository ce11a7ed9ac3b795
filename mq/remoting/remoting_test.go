package remoting

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A reply goes to whoever asked, in whatever order replies come.
func TestCallsOutOfOrder(t *testing.T) {
	t.Parallel()
	const calls = 10
	l := link(t, func(c net.Conn) {
		var ids []int32
		for range calls {
			id, _ := request(c)
			ids = append(ids, id)
		}
		for _, id := range slices.Backward(ids) {
			answer(c, id, fmt.Sprint(id))
		}
	})
	replies := make(chan string, calls)
	for range calls {
		go func() {
			r, err := l.Call(t.Context(), Request{})
			replies <- fmt.Sprint(string(r.Body), err)
		}()
	}
	seen := map[string]bool{}
	for range calls {
		seen[<-replies] = true
	}
	for id := range calls {
		if !seen[fmt.Sprint(id+1)+"<nil>"] {
			t.Errorf("nobody got reply %d: %v", id+1, seen)
		}
	}
}

// A request that waits fails when its connection breaks, and the next one makes a new connection.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	l := link(t, func(c net.Conn) {
		id, _ := request(c)
		if connections.Add(1) > 1 {
			answer(c, id, "back")
		}
	})
	if _, err := l.Call(t.Context(), Request{}); !errors.Is(err, ErrClosed) {
		t.Errorf("the first call: %v, want ErrClosed", err)
	}
	if r, err := l.Call(t.Context(), Request{}); err != nil || string(r.Body) != "back" {
		t.Errorf("the second call: %q, %v", r.Body, err)
	}
}

// A peer that is silent keeps a call no longer than its context; Reset and Close end it at once.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Link, context.CancelFunc){
		"context": func(_ *Link, cancel context.CancelFunc) { cancel() },
		"reset":   func(l *Link, _ context.CancelFunc) { l.Reset() },
		"close":   func(l *Link, _ context.CancelFunc) { l.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			reached := make(chan struct{})
			l := link(t, func(c net.Conn) { request(c); close(reached); io.Copy(io.Discard, c) })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error)
			go func() { _, err := l.Call(ctx, Request{}); done <- err }()
			<-reached
			end(l, cancel)
			select {
			case err := <-done:
				if err == nil {
					t.Error("a call without a reply succeeded")
				}
			case <-time.After(10 * time.Second):
				t.Error("the call still waits")
			}
		})
	}
}

// A peer that reads nothing blocks a large request no longer than its context.
func TestDeafPeer(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	l := link(t, func(net.Conn) { <-stop })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := l.Call(ctx, Request{Body: make([]byte, 16<<20)}); err == nil {
		t.Error("a request that nobody read succeeded")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the call took %v", took)
	}
}

// Frames that cannot be right end the connection instead of taking memory.
func TestBadFrames(t *testing.T) {
	t.Parallel()
	for name, frame := range map[string][]byte{
		"huge":                 {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"header beyond frame":  {0, 0, 0, 8, 0, 0, 0, 9, 1, 2, 3, 4},
		"too short":            {0, 0, 0, 1, 0, 0, 0, 0},
		"header is not JSON":   {0, 0, 0, 6, 0, 0, 0, 2, 'x', 'y'},
		"other kind of header": {0, 0, 0, 6, 1, 0, 0, 2, 'x', 'y'},
	} {
		l := link(t, func(c net.Conn) { request(c); c.Write(frame); io.Copy(io.Discard, c) })
		if _, err := l.Call(t.Context(), Request{}); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(stored(7, "body", "KEYS\x01k\x02"))
	f.Add(append(stored(7, "a", ""), stored(8, "b", "")...))
	f.Add(stored(1, "", "")[:50])
	f.Fuzz(func(t *testing.T, b []byte) {
		messages, err := Messages(b)
		if err != nil && !errors.Is(err, errFormat) {
			t.Error(err)
		}
		for _, m := range messages {
			m.Property(PropertyKeys)
		}
	})
}

func TestMessages(t *testing.T) {
	t.Parallel()
	p := "KEYS\x01token\x02REASON\x01bad\x02"
	got, err := Messages(append(stored(7, "one", p), stored(8, "two", "")...))
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if m := got[0]; m.Offset != 7 || string(m.Body) != "one" || m.StoredAt != 99 || m.Property(PropertyKeys) != "token" || m.Property(PropertyReason) != "bad" || m.Property("TAGS") != "" {
		t.Errorf("first: %+v", m)
	}
	if m := got[1]; m.Offset != 8 || string(m.Body) != "two" || m.Properties != "" {
		t.Errorf("second: %+v", m)
	}
}

// stored is a message as a broker hands it out.
func stored(offset int64, body, properties string) []byte {
	b := make([]byte, fixedToBorn)
	binary.BigEndian.PutUint64(b[offsetAt:], uint64(offset))
	b = append(b, make([]byte, host(false))...)
	b = binary.BigEndian.AppendUint64(b, 99)
	b = append(b, make([]byte, host(false)+reconsumeLen+preparedLen)...)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(body))), body...)
	b = append(b, 5, 't', 'o', 'p', 'i', 'c')
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(properties))), properties...)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

// link leads to a peer that serves each connection with f.
func link(t *testing.T, f func(net.Conn)) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); f(c) }()
		}
	}()
	l := NewLink(listener.Addr().String())
	t.Cleanup(func() { l.Close(); listener.Close(); <-served })
	return l
}

func request(c net.Conn) (id int32, err error) {
	id, _, _, err = readFrame(c)
	return id, err
}

func answer(c net.Conn, id int32, body string) {
	head := fmt.Sprintf(`{"code":0,"flag":1,"opaque":%d}`, id)
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
	c.Write(append(append(frame, head...), body...))
}
