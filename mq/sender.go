package mq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/google/uuid"
	"github.com/sony/gobreaker/v2"

	"floodgate/mq/remoting"
)

const (
	// tripAfter is how many sends in a row must fail before the queue is skipped: one slow flush is no outage, and an edge has at
	// most two batches on their way, so nobody waits for a third.
	tripAfter = 2
	// mostFlying bounds sends that the library has not returned from: it does not look at the context while it seeks a route.
	mostFlying = 64
	// renewAfter is how long sends may fail before the client is made anew: it forgets a broker that was away for long, and asks
	// for it only every 30 s.
	renewAfter = time.Second
)

// errFlying says that too many sends hang in the library.
var errFlying = errors.New("too many sends are not answered")

// entry is one message to be stored.
type entry struct {
	body   []byte
	key    string // by which RocketMQ's tools find it: the request token
	reason string // of a dead letter
}

// sender stores batches through rocketmq-client-go's producer, which is made at the first use and made anew where sends keep
// failing. A send answers within its context whatever the library does. Safe for concurrent use; close it.
type sender struct {
	cfg     Config
	breaker *gobreaker.CircuitBreaker[struct{}]
	flying  chan struct{}
	owned   sync.WaitGroup

	mu     sync.Mutex // guards what follows
	client rocketmq.Producer
	born   time.Time // of the client
	good   time.Time // the last send that was answered well
	closed bool
}

func newSender(cfg Config, m *metrics) *sender {
	s := &sender{cfg: cfg, flying: make(chan struct{}, mostFlying)}
	s.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name: cfg.Topic, Timeout: cfg.Probe,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded:    func(err error) bool { return errors.Is(err, context.Canceled) }, // the caller's doing
		OnStateChange: func(_ string, _, to gobreaker.State) { m.breaker.Set(float64(to)) },
	})
	return s
}

// store sends the entries as one batch to one queue of the topic; nil means that all are on the broker's disk. After an error they may
// be stored or not. Where sends keep failing it refuses at once, but for one probe in each probe time.
func (s *sender) store(ctx context.Context, topic string, entries []entry) error {
	_, err := s.breaker.Execute(func() (struct{}, error) { return struct{}{}, s.put(ctx, topic, entries) })
	return err
}

// put gives the batch to the library in a goroutine of its own, and does not wait for it beyond the context.
func (s *sender) put(ctx context.Context, topic string, entries []entry) error {
	select {
	case s.flying <- struct{}{}:
	default:
		return errFlying
	}
	client, err := s.current()
	if err != nil {
		<-s.flying
		return err
	}
	sent := make(chan error, 1)
	s.owned.Go(func() {
		defer func() { <-s.flying }()
		sent <- send(ctx, client, topic, entries)
	})
	select {
	case err = <-sent:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		s.mu.Lock()
		s.good = time.Now()
		s.mu.Unlock()
	}
	return err
}

// plain takes out the two characters that end a property on the wire.
var plain = strings.NewReplacer("\x01", "", "\x02", "")

func send(ctx context.Context, client rocketmq.Producer, topic string, entries []entry) error {
	batch := make([]*primitive.Message, len(entries))
	for i, e := range entries {
		batch[i] = primitive.NewMessage(topic, e.body)
		if e.key != "" {
			batch[i].WithKeys([]string{e.key})
		}
		if e.reason != "" {
			batch[i].WithProperty(remoting.PropertyReason, plain.Replace(e.reason[:min(len(e.reason), maxReason)]))
		}
	}
	r, err := client.SendSync(ctx, batch...)
	if err == nil && r.Status != primitive.SendOK { // also "stored, but not on disk yet"
		err = fmt.Errorf("the broker answered with status %d", r.Status)
	}
	return err
}

// current is the client; it is made at the first use, and anew where nothing was sent for some time although it was tried.
func (s *sender) current() (rocketmq.Producer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the producer is closed")
	}
	failing := s.breaker.State() != gobreaker.StateClosed
	if s.client != nil && (!failing || time.Since(s.born) < renewAfter || time.Since(s.good) < renewAfter) {
		return s.client, nil
	}
	fresh, err := newClient(s.cfg)
	if err != nil {
		return nil, err
	}
	s.retire()
	s.client, s.born = fresh, time.Now()
	return fresh, nil
}

// retire shuts the client down in the background; mu is held.
func (s *sender) retire() {
	if old := s.client; old != nil {
		s.owned.Go(func() { _ = old.Shutdown() })
	}
}

// close ends the connections; what is being sent gets an error within the library's own time.
func (s *sender) close() {
	s.mu.Lock()
	s.closed = true
	s.retire()
	s.client = nil
	s.mu.Unlock()
	s.owned.Wait()
}

// newClient starts a producer under a name of its own: producers of one process would share a client otherwise.
func newClient(cfg Config) (rocketmq.Producer, error) {
	quiet()
	name := uuid.NewString()
	servers := make([]string, len(cfg.NameServers))
	for i, s := range cfg.NameServers {
		servers[i] = "http://" + s // without it the library takes nothing but IP addresses
	}
	client, err := rocketmq.NewProducer(
		producer.WithNameServer(servers),
		producer.WithInstanceName(name), producer.WithGroupName("floodgate_"+name),
		producer.WithRetry(0), producer.WithSendMsgTimeout(cfg.SendTimeout),
		producer.WithCompressMsgBodyOverHowmuch(1<<20), // orders are smaller, and JSON of tokens compresses badly
		producer.WithQueueSelector(&turns{}),
	)
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start a producer: %w", err)
	}
	return client, nil
}

// turns takes the queues of a topic in turn, a batch each.
type turns struct{ n atomic.Uint32 }

// Select is the library's QueueSelector.
func (t *turns) Select(_ *primitive.Message, queues []*primitive.MessageQueue, _ string) *primitive.MessageQueue {
	return queues[int(t.n.Add(1))%len(queues)]
}

// quiet makes the library write nothing: it logs each failed send with its topic, and what fails is counted and told by us.
var quiet = sync.OnceFunc(func() { rlog.SetLogger(silence{}) })

type silence struct{}

func (silence) Debug(string, map[string]any)   {}
func (silence) Info(string, map[string]any)    {}
func (silence) Warning(string, map[string]any) {}
func (silence) Error(string, map[string]any)   {}
func (silence) Fatal(string, map[string]any)   {}
func (silence) Level(string)                   {}
func (silence) OutputPath(string) error        { return nil }

const (
	maxReason = 1000    // bytes; keeps a dead letter's properties far below the broker's 32 KiB
	maxDead   = 1 << 20 // bytes of a dead letter's body that are kept: a broker takes 4 MiB, an order has 400 bytes
)
