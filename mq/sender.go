package mq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"floodgate/mq/remoting"
	"floodgate/sale"
)

// tripAfter is how many sends in a row must fail before a broker is skipped: one slow flush is no outage, and an edge has at
// most two batches on their way, so nobody waits for a third.
const tripAfter = 2

// entry is one message to be stored.
type entry struct {
	body   []byte
	key    string // by which RocketMQ's tools find it: the request token
	reason string // of a dead letter
}

// lane is a writable queue and its broker's breaker.
type lane struct {
	queue
	breaker *gobreaker.CircuitBreaker[struct{}]
}

// sender stores batches in a topic, each in the next of its queues. It must be refreshed by its owner, by one goroutine at a time; store is safe for concurrent use.
type sender struct {
	cluster *cluster
	topic   string
	probe   time.Duration
	metrics *metrics
	lanes   atomic.Pointer[[]lane] // nil until a route is known
	turn    atomic.Uint32
}

// refresh reads the topic's queues anew.
func (s *sender) refresh(ctx context.Context) error {
	queues, err := s.cluster.look(ctx, s.topic)
	if err != nil {
		return err
	}
	breakers := map[string]*gobreaker.CircuitBreaker[struct{}]{}
	if before := s.lanes.Load(); before != nil {
		for _, l := range *before {
			breakers[l.addr] = l.breaker
		}
	}
	var lanes []lane
	for _, q := range queues {
		if !q.write {
			continue
		}
		if breakers[q.addr] == nil {
			breakers[q.addr] = s.newBreaker(q.addr)
		}
		lanes = append(lanes, lane{q, breakers[q.addr]})
	}
	if len(lanes) == 0 {
		return fmt.Errorf("no queue of %s may be written", s.topic)
	}
	s.lanes.Store(&lanes)
	return nil
}

func (s *sender) newBreaker(addr string) *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name: addr, Timeout: s.probe,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, context.Canceled) }, // the caller's doing
		OnStateChange: func(_ string, _, to gobreaker.State) {
			s.metrics.breaker.Set(float64(to))
			if to == gobreaker.StateOpen {
				s.cluster.broker(addr).Reset()
			}
		},
	})
}

// store sends the entries as one batch to one queue; nil means that all are on the broker's disk. After an error they may be stored or not.
func (s *sender) store(ctx context.Context, entries []entry) error {
	l, ok := s.next()
	if !ok {
		return errNoRoute
	}
	_, err := l.breaker.Execute(func() (struct{}, error) { return struct{}{}, s.put(ctx, l.queue, entries) })
	return err
}

// next is the next queue in turn whose broker is not known to be down, or just the next one.
func (s *sender) next() (lane, bool) {
	known := s.lanes.Load()
	if known == nil {
		return lane{}, false
	}
	lanes, at := *known, int(s.turn.Add(1))
	for i := range lanes {
		if l := lanes[(at+i)%len(lanes)]; l.breaker.State() != gobreaker.StateOpen {
			return l, true
		}
	}
	return lanes[at%len(lanes)], true
}

// The broker's short names of a batch's fields.
func batchFields(q queue) map[string]string {
	return map[string]string{
		"a": "floodgate", "b": q.topic, "c": "TBW102", "d": "4", // group; the template of topics is named, but topics are made by hand
		"e": strconv.Itoa(q.id), "f": "0", "g": strconv.FormatInt(time.Now().UnixMilli(), 10), "h": "0",
		"i": "", "j": "0", "k": "false", "l": "0", "m": "true", "n": q.broker,
	}
}

func (s *sender) put(ctx context.Context, q queue, entries []entry) error {
	body := make([]byte, 0, len(entries)*(sale.MaxMessage+100))
	for _, e := range entries {
		body = remoting.AppendBatch(body, e.body, remoting.Property{Name: remoting.PropertyKeys, Value: e.key},
			remoting.Property{Name: remoting.PropertyReason, Value: e.reason[:min(len(e.reason), maxReason)]})
	}
	reply, err := s.cluster.broker(q.addr).Call(ctx, remoting.Request{Code: remoting.SendBatch, Fields: batchFields(q), Body: body})
	if err != nil {
		return err
	}
	if reply.Code != remoting.Success { // also "stored, but not on disk yet"
		return refused(reply)
	}
	return nil
}

const (
	maxReason = 1000    // bytes; keeps a dead letter's properties far below the broker's 32 KiB
	maxDead   = 1 << 20 // bytes of a dead letter's body that are kept: a broker takes 4 MiB, an order has 400 bytes
)
