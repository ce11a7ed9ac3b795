package mq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"floodgate/mq/remoting"
)

// callTime bounds one small request to a name server or a broker.
const callTime = time.Second

// forget is how long a broker that the name servers no longer name stays in a route beside brokers that they do name: longer than any
// restart, so that its queues are tried again at once, and are not taken for drained while it is away.
const forget = 10 * time.Minute

// errNoRoute says that no name server has ever told where the topic's queues are.
var errNoRoute = errors.New("no name server knows the topic, or its brokers are away")

// queue is one queue of a topic.
type queue struct {
	topic  string
	broker string // its name
	addr   string // of the broker's master
	id     int
	read   bool
	write  bool
}

func (q queue) name() string { return q.broker + ":" + strconv.Itoa(q.id) }

// fields are those of every request about one queue.
func (q queue) fields() map[string]string {
	return map[string]string{"topic": q.topic, "queueId": strconv.Itoa(q.id), "bname": q.broker}
}

// cluster knows the ways: the newest route of each topic that a name server has told, and a link to each broker. A route outlives
// the name server's memory of it: a broker that was killed and came back is unknown there for up to 10 s, and is
// reached all the same. Safe for concurrent use.
type cluster struct {
	servers []*remoting.Link

	mu     sync.Mutex                // guards what follows
	routes map[string]route          // by topic; this package has four
	links  map[string]*remoting.Link // by broker's address, those of the routes only
	closed bool
}

func newCluster(cfg Config) *cluster {
	c := &cluster{routes: map[string]route{}, links: map[string]*remoting.Link{}}
	for _, addr := range cfg.NameServers {
		c.servers = append(c.servers, remoting.NewLink(addr))
	}
	return c
}

func (c *cluster) close() {
	c.mu.Lock()
	c.closed = true
	links := append(slices.Clone(c.servers), values(c.links)...)
	c.mu.Unlock()
	for _, l := range links {
		l.Close()
	}
}

func values[K comparable, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// look asks the name servers for the topic's queues, in order of broker and number, and falls back on what they said before.
func (c *cluster) look(ctx context.Context, topic string) ([]queue, error) {
	fresh, err := c.ask(ctx, topic)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && len(fresh) > 0 {
		c.routes[topic] = c.routes[topic].learn(fresh, time.Now())
		c.prune()
	}
	if known := c.routes[topic].queues; known != nil {
		return known, nil
	}
	return nil, cmp.Or(err, errNoRoute)
}

// route is where a topic's queues are, and when each broker was last named. It is never changed.
type route struct {
	queues []queue
	seen   map[string]time.Time // by broker
}

// learn is the route after an answer.
func (r route) learn(fresh []queue, now time.Time) route {
	next := route{queues: slices.Clone(fresh), seen: map[string]time.Time{}}
	for _, q := range fresh {
		next.seen[q.broker] = now
	}
	for _, q := range r.queues {
		if r.seen[q.broker].Before(now.Add(-forget)) || next.seen[q.broker].Equal(now) {
			continue
		}
		next.seen[q.broker] = r.seen[q.broker]
		next.queues = append(next.queues, q)
	}
	slices.SortFunc(next.queues, byName)
	return next
}

func byName(a, b queue) int { return cmp.Or(cmp.Compare(a.broker, b.broker), a.id-b.id) }

// ask tries one name server after the other.
func (c *cluster) ask(ctx context.Context, topic string) ([]queue, error) {
	var faults []error
	for _, s := range c.servers {
		reply, err := call(ctx, s, remoting.Request{Code: remoting.RouteOfTopic,
			Fields: map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"}})
		switch {
		case err != nil:
			faults = append(faults, err)
		case reply.Code == remoting.TopicMissing:
			faults = append(faults, fmt.Errorf("%w: %s", errNoRoute, topic))
		case reply.Code != remoting.Success:
			faults = append(faults, refused(reply))
		default:
			return readRoute(topic, reply.Body)
		}
	}
	return nil, errors.Join(faults...)
}

// call is a small request with a time limit; a peer that was silent for so long is connected to anew.
func call(ctx context.Context, l *remoting.Link, r remoting.Request) (remoting.Reply, error) {
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	reply, err := l.Call(limited, r)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		l.Reset()
	}
	return reply, err
}

// refused is the error of a reply that has no good code.
func refused(r remoting.Reply) error { return fmt.Errorf("refused with code %d: %s", r.Code, r.Remark) }

// readRoute reads a name server's answer.
func readRoute(topic string, body []byte) ([]queue, error) {
	var route struct {
		BrokerDatas []struct {
			BrokerName  string
			BrokerAddrs map[string]string // by broker id, 0 is the master
		}
		QueueDatas []struct {
			BrokerName                          string
			ReadQueueNums, WriteQueueNums, Perm int
		}
	}
	if err := json.Unmarshal(body, &route); err != nil {
		return nil, fmt.Errorf("unreadable route of %s: %w", topic, err)
	}
	masters := map[string]string{}
	for _, b := range route.BrokerDatas {
		masters[b.BrokerName] = b.BrokerAddrs["0"]
	}
	const mayRead, mayWrite, most = 4, 2, 1024 // most: queues of one broker and topic
	var queues []queue
	for _, d := range route.QueueDatas {
		for id := range min(max(d.ReadQueueNums, d.WriteQueueNums), most) {
			if addr := masters[d.BrokerName]; addr != "" {
				queues = append(queues, queue{topic: topic, broker: d.BrokerName, addr: addr, id: id,
					read: d.Perm&mayRead != 0 && id < d.ReadQueueNums, write: d.Perm&mayWrite != 0 && id < d.WriteQueueNums})
			}
		}
	}
	return queues, nil
}

// prune closes the links to brokers that no route names any more. The caller holds mu.
func (c *cluster) prune() {
	used := map[string]bool{}
	for _, r := range c.routes {
		for _, q := range r.queues {
			used[q.addr] = true
		}
	}
	for addr, l := range c.links {
		if !used[addr] {
			delete(c.links, addr)
			l.Reset() // its reader ends by itself; nobody will call again
		}
	}
}

// broker is the link to a broker.
func (c *cluster) broker(addr string) *remoting.Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.links[addr]
	if l == nil {
		l = remoting.NewLink(addr)
		if c.closed {
			l.Close()
			return l
		}
		c.links[addr] = l
	}
	return l
}

// offset asks a broker for one number about a queue; def is the answer where it has none yet.
func (c *cluster) offset(ctx context.Context, q queue, code int, group string, def int64) (int64, error) {
	fields := q.fields()
	if group != "" {
		fields["consumerGroup"] = group
	}
	reply, err := call(ctx, c.broker(q.addr), remoting.Request{Code: code, Fields: fields})
	switch {
	case err != nil:
		return 0, err
	case reply.Code == remoting.QueryNotFound:
		return def, nil
	case reply.Code != remoting.Success:
		return 0, refused(reply)
	}
	return strconv.ParseInt(reply.Fields["offset"], 10, 64)
}
