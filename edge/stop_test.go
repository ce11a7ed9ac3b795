package edge

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A stop that comes before the server has begun to serve ends it all the same.
func TestStopAtTheStart(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for range 20 {
		d := s.edge.deps
		var err error
		d.Listener, err = net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		d.Registerer = prometheus.NewRegistry()
		e, err := New(testConfig(), d)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		select {
		case err := <-done:
			must(t, err)
		case <-time.After(15 * time.Second):
			t.Fatal("the edge does not stop")
		}
	}
}
