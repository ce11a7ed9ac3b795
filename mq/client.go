package mq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"floodgate/mq/remoting"
	"floodgate/sale"
)

const (
	// maxSends bounds the sends of one client that are on their way; an edge has at most two.
	maxSends = 64
	// closeTime is how long closing waits for the library: it takes no context while it asks a name server, 6 s for each question.
	closeTime = time.Second

	maxReason = 1000    // bytes; keeps a dead letter's properties far below the broker's 32 KiB
	maxDead   = 1 << 20 // bytes of a dead letter's body that are kept: a broker takes 4 MiB, an order has 400 bytes
)

var errBusy = errors.New("too many sends are on their way")

// The library writes to stderr from its import on, each failed attempt of an outage several times. What it says reaches us as errors.
func init() { rlog.SetLogger(silence{}) }

type silence struct{}

func (silence) Debug(string, map[string]any)   {}
func (silence) Info(string, map[string]any)    {}
func (silence) Warning(string, map[string]any) {}
func (silence) Error(string, map[string]any)   {}
func (silence) Fatal(string, map[string]any)   {}
func (silence) Level(string)                   {}
func (silence) OutputPath(string) error        { return nil }

// entry is one message to be stored.
type entry struct {
	body   []byte
	key    string // by which RocketMQ's tools find it: the request token
	reason string // of a dead letter
}

// client is one producer of the library for one topic: its connections and its route. It keeps a route once it has one, also while
// the name server does not know the broker, but it never gives up a connection that is silent without being broken: then it is
// closed and another made. Safe for concurrent use.
type client struct {
	topic    string
	producer rocketmq.Producer
	turns    *turns
	born     time.Time
	ready    chan struct{} // closed when a route is known
	stop     context.CancelFunc
	slots    chan struct{} // one for each send on its way
	sought   chan struct{} // closed when nobody seeks the route any more
}

// newClient returns at once; the route is sought in the background until it is found or the client is closed.
func newClient(cfg Config, topic string, timeout time.Duration) (*client, error) {
	var servers primitive.NamesrvAddr
	for _, addr := range cfg.NameServers {
		servers = append(servers, "http://"+addr) // without it the library takes nothing but IP addresses
	}
	t := &turns{pause: cfg.Probe, failed: map[string]time.Time{}}
	p, err := rocketmq.NewProducer(
		producer.WithNameServer(servers),
		producer.WithGroupName("floodgate"),
		producer.WithInstanceName(rand.Text()), // clients of one name would share connections, and end each other
		producer.WithRetry(0),                  // a second try stores twice
		producer.WithSendMsgTimeout(timeout),
		producer.WithQueueSelector(t),
		producer.WithCreateTopicKey(topic), // topics are made by hand: an unknown one has no route, and no template either
		producer.WithDefaultTopicQueueNums(math.MaxInt16),
		producer.WithCompressMsgBodyOverHowmuch(math.MaxInt),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot make a producer for %s: %w", topic, err)
	}
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("cannot start a producer for %s: %w", topic, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &client{topic: topic, producer: p, turns: t, born: time.Now(), stop: stop, ready: make(chan struct{}), sought: make(chan struct{}),
		slots: make(chan struct{}, maxSends)}
	go func() { defer close(c.sought); c.seek(ctx, cfg.Probe) }()
	return c, nil
}

// seek makes the library ask for the route, with a message for which no queue is chosen, until it has one: a send would be held
// up by a name server that is silent.
func (c *client) seek(ctx context.Context, pause time.Duration) {
	for {
		c.producer.SendSync(ctx, &primitive.Message{Topic: c.topic}) // always an error
		if c.turns.asked.Load() {
			close(c.ready)
			return
		}
		if !rest(ctx, pause) {
			return
		}
	}
}

func (c *client) found() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// store sends the entries as one batch to one queue; nil means that all are on the broker's disk. After an error, at the latest when ctx
// ends, they may be stored or not.
func (c *client) store(ctx context.Context, entries []entry) error {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return errBusy
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-c.slots }()
		done <- c.send(ctx, entries)
	}()
	select {
	case err := <-done:
		if err != nil && ctx.Err() != nil {
			return ctx.Err() // the library's own error tells less
		}
		return err
	case <-ctx.Done(): // whatever the library does
		return ctx.Err()
	}
}

func (c *client) send(ctx context.Context, entries []entry) error {
	var chosen primitive.MessageQueue
	batch := make([]*primitive.Message, len(entries))
	for i, e := range entries {
		m := primitive.NewMessage(c.topic, e.body)
		m.WithProperty(primitive.PropertyKeys, plain(e.key))
		m.WithProperty(remoting.PropertyReason, plain(e.reason[:min(len(e.reason), maxReason)]))
		batch[i] = m
	}
	batch[0].Queue = &chosen // the batch's; filled by the selector
	got, err := c.producer.SendSync(ctx, batch...)
	if err == nil && got.Status != primitive.SendOK { // "stored, but not on disk yet", for one
		err = fmt.Errorf("the broker's status is %d", got.Status)
	}
	c.turns.tell(chosen.BrokerName, err)
	return err
}

// plain takes out of a property's value what ends a property on the wire.
func plain(value string) string {
	return strings.Map(func(r rune) rune {
		if r == 1 || r == 2 {
			return -1
		}
		return r
	}, value)
}

// close ends the connections; what is being sent gets an error in its own time. It waits for the library no longer than closeTime.
func (c *client) close() {
	c.stop()
	limit := time.NewTimer(closeTime)
	defer limit.Stop()
	select {
	case <-c.sought:
	case <-limit.C:
		limit.Reset(0)
	}
	for range maxSends { // who holds all slots knows that no send is on its way
		select {
		case c.slots <- struct{}{}:
			continue
		case <-limit.C:
		}
		break
	}
	c.producer.Shutdown()
}

// turns chooses the next queue for each batch, passing over brokers that have just failed while there are others. Safe for concurrent use.
type turns struct {
	pause time.Duration
	asked atomic.Bool // a route is known
	turn  atomic.Uint32

	mu     sync.Mutex
	failed map[string]time.Time // by broker's name; a cluster has few
}

// Select gives the batch's queue, and none to a message that only seeks the route.
func (t *turns) Select(m *primitive.Message, queues []*primitive.MessageQueue, _ string) *primitive.MessageQueue {
	t.asked.Store(true)
	if m.Queue == nil {
		return nil
	}
	at, now := int(t.turn.Add(1)), time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	q := queues[at%len(queues)]
	for i := range queues {
		next := queues[(at+i)%len(queues)]
		if now.Sub(t.failed[next.BrokerName]) >= t.pause {
			q = next
			break
		}
	}
	*m.Queue = *q
	return q
}

// tell notes how a send to a broker ended; no name where none was chosen.
func (t *turns) tell(broker string, err error) {
	if broker == "" || errors.Is(err, context.Canceled) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failed[broker] = time.Now()
		return
	}
	delete(t.failed, broker)
}

// pack writes a batch's messages.
func pack(batch []sale.Message) []entry {
	entries := make([]entry, len(batch))
	for i := range batch {
		entries[i] = entry{body: batch[i].Append(make([]byte, 0, sale.MaxMessage)), key: string(batch[i].Token)}
	}
	return entries
}
