package mq_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"floodgate/mq"
)

const (
	tolerance = 500 * time.Millisecond // the send timeout of 200 ms on a busy machine
	atOnce    = 100 * time.Millisecond // surely without waiting for the send timeout
)

// A broker that accepts connections and never answers: unknown is told as unknown, in time, and soon without waiting.
func TestSilentBroker(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	p := producerTo(t, nameServer(t, listener(t, swallow)), registry)
	for range 2 {
		if took := unanswered(t, p); took < 190*time.Millisecond || took > tolerance {
			t.Errorf("Send answered after %v, want 200 ms", took)
		}
	}
	for range 3 {
		if took := unanswered(t, p); took > atOnce {
			t.Errorf("Send answered after %v while the broker is known to be down", took)
		}
	}
	if n := gathered(t, registry, "floodgate_mq_unanswered_total"); n != 5 {
		t.Errorf("unanswered: %v, want 5", n)
	}
	if n := gathered(t, registry, "floodgate_mq_breaker_state"); n != 2 {
		t.Errorf("breaker: %v, want 2 (open)", n)
	}
	// One purchase in each probe's time tries again, the others do not wait.
	eventually(t, "the broker is probed", func() bool { return unanswered(t, p) > 150*time.Millisecond })
	if took := unanswered(t, p); took > atOnce {
		t.Errorf("Send after a failed probe took %v", took)
	}
}

// Name servers that are silent, or not there, block neither the start nor the purchases.
func TestSilentNameServer(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{listener(t, swallow), "127.0.0.1:1"} {
		began := time.Now()
		p := producerTo(t, addr, nil)
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("the producer took %v to start", took)
		}
		if took := unanswered(t, p); took > tolerance {
			t.Errorf("the first Send took %v", took)
		}
		eventually(t, "nobody waits any more", func() bool { return unanswered(t, p) < atOnce/10 })
	}
}

// A broker that ends every connection after it has read the request may have stored it. The library tells nobody who waits for an answer
// on a connection that broke, so the send timeout does.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	p := producerTo(t, nameServer(t, listener(t, func(c net.Conn) { c.Read(make([]byte, 64<<10)) })), nil)
	if took := unanswered(t, p); took > tolerance {
		t.Errorf("a broken connection was noticed after %v", took)
	}
}

func producerTo(t *testing.T, nameServer string, r prometheus.Registerer) *mq.RocketProducer {
	t.Helper()
	cfg := mq.Config{Driver: "rocketmq", NameServers: []string{nameServer}}
	p, err := mq.NewRocketProducer(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), mq.WithMetrics(r))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func unanswered(t *testing.T, p mq.Producer) time.Duration {
	t.Helper()
	began := time.Now()
	if err := p.Send(t.Context(), messages(1, 1)); !errors.Is(err, mq.ErrUnanswered) {
		t.Errorf("Send: %v, want ErrUnanswered", err)
	}
	return time.Since(began)
}

func gathered(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// listener serves connections with f until the test ends, and then closes them: a client of the library keeps its own for a while.
func listener(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	over := make(chan struct{})
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { defer c.Close(); f(c) })
			serving.Go(func() { <-over; c.Close() })
		}
	})
	t.Cleanup(func() { l.Close(); close(over); serving.Wait() })
	return l.Addr().String()
}

func swallow(c net.Conn) { io.Copy(io.Discard, c) }

// nameServer answers every request with a route to one broker with one queue.
func nameServer(t *testing.T, broker string) string {
	t.Helper()
	return answering(t, fmt.Sprintf(`{"brokerDatas":[{"brokerName":"b","brokerAddrs":{"0":%q}}],
		"queueDatas":[{"brokerName":"b","readQueueNums":1,"writeQueueNums":1,"perm":6}]}`, broker))
}

// answering answers every request with success and this body.
func answering(t *testing.T, body string) string {
	t.Helper()
	return listener(t, func(c net.Conn) {
		for {
			var length struct{ Frame, Header uint32 }
			if binary.Read(c, binary.BigEndian, &length) != nil {
				return
			}
			rest := make([]byte, length.Frame-4)
			if _, err := io.ReadFull(c, rest); err != nil {
				return
			}
			var request struct{ Opaque int }
			if json.Unmarshal(rest[:length.Header], &request) != nil {
				return
			}
			head := fmt.Sprintf(`{"code":0,"flag":1,"opaque":%d}`, request.Opaque)
			frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)+len(body)))
			frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
			c.Write(append(append(frame, head...), body...))
		}
	})
}
