package mq

import (
	"io"
	"net"
	"testing"
	"time"

	"floodgate/mq/remoting"
)

// A broker that falls silent without a broken connection holds a pull for less than the 5 s of the promise, and is connected to anew.
func TestPullOfSilentBroker(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err == nil {
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	c := newCluster(Config{})
	defer c.close()
	began := time.Now()
	if _, err := c.pull(t.Context(), "workers", queue{broker: "b", addr: l.Addr().String()}, 0, 1, true); err == nil {
		t.Error("a silent broker's pull succeeded")
	}
	if took := time.Since(began); took < longPoll || took > 4*time.Second {
		t.Errorf("the pull was given up after %v, want %v", took, pullTime)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the silent connection was kept")
	}
}

func TestReadPull(t *testing.T) {
	moved := remoting.Reply{Code: remoting.OffsetMoved, Fields: map[string]string{"nextBeginOffset": "7"}}
	if got, err := readPull(moved, 100); err != nil || got.next != 7 {
		t.Errorf("an offset that moved: %+v, %v; want 7", got, err)
	}
	nothing := remoting.Reply{Code: remoting.NothingYet, Fields: map[string]string{"nextBeginOffset": "7"}}
	if got, err := readPull(nothing, 100); err != nil || got.next != 100 {
		t.Errorf("nothing yet: %+v, %v; want 100 again", got, err)
	}
	for _, bad := range []remoting.Reply{{Code: remoting.TopicMissing}, {Code: remoting.Success}, {Code: remoting.Success, Body: []byte("x")}} {
		if got, err := readPull(bad, 100); err == nil {
			t.Errorf("%+v was read as %+v", bad, got)
		}
	}
}
