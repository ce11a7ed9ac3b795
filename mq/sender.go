package mq

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// tripAfter is how many sends in a row must fail before none is tried: one slow flush is no outage, and an edge has at most two
	// batches on their way, so nobody waits for a third.
	tripAfter = 2
	// spareAge is when a spare client that has not worked is made anew: its connections may have fallen silent too. The library
	// leaves some goroutines behind for 10 s and a connection to the name server for 2 minutes, so not with every probe.
	spareAge = 5 * time.Second
)

// sender stores batches in a topic behind a breaker, through a client of the library. While that fails a spare one stands beside it, and
// probes take them in turn: the first still knows the way to a broker that the name server has forgotten, the spare has no
// connection that has fallen silent. Whichever works stays. Safe for concurrent use.
type sender struct {
	cfg     Config
	topic   string
	timeout time.Duration
	breaker *gobreaker.CircuitBreaker[struct{}]
	metrics *metrics
	stop    context.CancelFunc
	owned   sync.WaitGroup

	mu    sync.Mutex // guards what follows
	first *client
	spare *client // nil while first works
	turn  bool    // the spare is next
}

// newSender returns at once; close it.
func newSender(cfg Config, topic string, timeout time.Duration, m *metrics) (*sender, error) {
	first, err := newClient(cfg, topic, timeout)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &sender{cfg: cfg, topic: topic, timeout: timeout, metrics: m, stop: stop, first: first}
	s.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name: topic, Timeout: cfg.Probe,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded:    func(err error) bool { return errors.Is(err, context.Canceled) }, // the caller's doing
		OnStateChange: func(_ string, _, to gobreaker.State) { m.breaker.Set(float64(to)) },
	})
	s.owned.Go(func() { s.tend(ctx) })
	return s, nil
}

// store sends the entries as one batch to one queue; nil means that all are on the broker's disk. After an error they may be stored or not.
func (s *sender) store(ctx context.Context, entries []entry) error {
	_, err := s.breaker.Execute(func() (struct{}, error) {
		c := s.choose()
		select {
		case <-c.ready:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return struct{}{}, ctx.Err()
			}
			return struct{}{}, errNoRoute
		}
		err := c.store(ctx, entries)
		if err == nil {
			s.keep(c)
		}
		return struct{}{}, err
	})
	return err
}

// choose is the first client, and every other time the spare, where there is one that knows the way.
func (s *sender) choose() *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare == nil || !s.spare.found() {
		return s.first
	}
	s.turn = !s.turn
	if s.turn || !s.first.found() {
		return s.spare
	}
	return s.first
}

// keep makes the client that has worked the first one.
func (s *sender) keep(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c == s.spare {
		s.first, s.spare = s.spare, s.first // the loser is closed by tend
	}
}

// tend makes spares while nothing works, and closes what is not needed, until ctx ends.
func (s *sender) tend(ctx context.Context) {
	for rest(ctx, s.cfg.Probe) {
		var spare *client
		if s.ailing() {
			if !s.due() {
				continue
			}
			made, err := newClient(s.cfg, s.topic, s.timeout)
			if err != nil {
				continue // it was made before with the same settings
			}
			spare = made
		}
		s.mu.Lock()
		old := s.spare
		s.spare = spare
		s.mu.Unlock()
		if old != nil {
			old.close()
		}
	}
}

func (s *sender) ailing() bool {
	s.mu.Lock()
	found := s.first.found()
	s.mu.Unlock()
	return !found || s.breaker.State() != gobreaker.StateClosed
}

func (s *sender) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spare == nil || time.Since(s.spare.born) >= spareAge
}

// close ends all connections; what is being sent gets an error.
func (s *sender) close() {
	s.stop()
	s.owned.Wait()
	s.mu.Lock()
	first, spare := s.first, s.spare
	s.mu.Unlock()
	first.close()
	if spare != nil {
		spare.close()
	}
}
