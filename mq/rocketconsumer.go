package mq

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"floodgate/mq/remoting"
)

// beat is how often a worker tells the brokers that it lives, and shares the queues anew: so a queue of a worker that was killed (whose
// connection breaks) or that came is in new hands within about a second.
const beat = time.Second

// RocketConsumer takes orders from RocketMQ. The workers of a group share the topic's queues: each computes the same shares from the
// broker's list of living members, and for a moment two may hold one queue, which is harmless, since placing is idempotent.
// Each queue is pulled by a goroutine of its own that keeps its place through any outage.
type RocketConsumer struct {
	cfg     Config
	logger  *slog.Logger
	metrics *metrics
}

var _ Consumer = (*RocketConsumer)(nil)

// NewRocketConsumer connects to nothing before Run.
func NewRocketConsumer(cfg Config, logger *slog.Logger, opts ...Option) (*RocketConsumer, error) {
	cfg.fill()
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &RocketConsumer{cfg: cfg, logger: logger, metrics: newMetrics(apply(opts).registry, "rocketmq")}, nil
}

// Run consumes until ctx ends; see [Consumer].
func (c *RocketConsumer) Run(ctx context.Context, h Handler) error {
	cluster := newCluster(c.cfg)
	defer cluster.close()
	host, _ := os.Hostname() // for people who read the broker's list of members
	m := &member{RocketConsumer: c, cluster: cluster, id: fmt.Sprintf("%s@%d#%s", host, os.Getpid(), rand.Text()[:8]),
		dead: newDeadStore(c.cfg), pullers: map[string]*puller{},
		offer: &offerer{handle: h, metrics: c.metrics, logger: c.logger}}
	for ctx.Err() == nil {
		pause := beat
		if err := m.share(ctx); err != nil {
			m.tell(ctx, err)
			pause = c.cfg.Probe
		} else {
			m.told = false
		}
		rest(ctx, pause)
	}
	m.stopAll()
	m.dead.close()
	return nil
}

// member is one worker among those of its group, during one Run.
type member struct {
	*RocketConsumer
	cluster *cluster
	id      string
	offer   *offerer
	dead    *deadStore
	pullers map[string]*puller // by queue name
	told    bool
}

// tell logs the first error of an outage.
func (m *member) tell(ctx context.Context, err error) {
	if !m.told && ctx.Err() == nil {
		m.told = true
		m.logger.Warn("the queue does not answer; it is tried again", "topic", m.cfg.Topic, "error", err)
	}
}

// puller is the goroutine of one queue.
type puller struct {
	addr string // of the broker it pulls from
	stop context.CancelFunc
	done chan struct{}
}

// share finds out which queues are this member's and pulls exactly those. During an outage it leaves things as they are.
func (m *member) share(ctx context.Context) error {
	queues, err := m.cluster.look(ctx, m.cfg.Topic)
	if err != nil {
		return err
	}
	queues = slices.DeleteFunc(slices.Clone(queues), func(q queue) bool { return !q.read })
	ids, err := m.enrol(ctx, queues)
	if err != nil {
		return err
	}
	mine := map[string]string{} // queue name -> address
	for _, q := range portion(queues, ids, m.id) {
		mine[q.name()] = q.addr
		m.start(ctx, q)
	}
	for name, p := range m.pullers {
		if p.addr != mine[name] { // another worker's now, or its broker has moved
			p.stop()
		}
		if p.ended() {
			delete(m.pullers, name)
		}
	}
	return nil
}

// enrol tells every broker that this member lives, and reads the members of the group from one that answers.
func (m *member) enrol(ctx context.Context, queues []queue) (ids []string, err error) {
	asked := map[string]bool{}
	for _, q := range queues {
		if asked[q.addr] {
			continue
		}
		asked[q.addr] = true
		found, fault := m.enrolAt(ctx, q.addr)
		if fault != nil {
			err = fault
			continue
		}
		if ids == nil {
			ids = found
		}
	}
	if ids == nil {
		return nil, err
	}
	return ids, nil
}

func (m *member) enrolAt(ctx context.Context, addr string) ([]string, error) {
	link := m.cluster.broker(addr)
	reply, err := call(ctx, link, remoting.Request{Code: remoting.Heartbeat, Body: m.heartbeat()})
	if err != nil {
		return nil, err
	}
	if reply.Code != remoting.Success {
		return nil, refused(reply)
	}
	reply, err = call(ctx, link, remoting.Request{Code: remoting.ConsumersOfGroup, Fields: map[string]string{"consumerGroup": m.cfg.Group}})
	if err != nil {
		return nil, err
	}
	if reply.Code != remoting.Success {
		return nil, refused(reply)
	}
	var list struct{ ConsumerIDList []string }
	if err := json.Unmarshal(reply.Body, &list); err != nil {
		return nil, fmt.Errorf("unreadable list of members: %w", err)
	}
	return list.ConsumerIDList, nil
}

func (m *member) heartbeat() []byte {
	type object map[string]any
	b, err := json.Marshal(object{"clientID": m.id, "producerDataSet": []object{}, "consumerDataSet": []object{{
		"groupName": m.cfg.Group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
		"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": false,
		"subscriptionDataSet": []object{{"topic": m.cfg.Topic, "subString": "*", "subVersion": 0, "expressionType": "TAG",
			"classFilterMode": false, "tagsSet": []string{}, "codeSet": []int{}}},
	}}})
	if err != nil {
		panic("mq: " + err.Error()) // strings and numbers only
	}
	return b
}

// portion gives each member, in order of their ids, every so-maniest queue. A broker lists a member once for each connection that it
// knows of it, and keeps one that had ended before its last heartbeat was worked off for two minutes: counted twice, a member would
// leave queues to nobody.
func portion(queues []queue, ids []string, id string) []queue {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	at := slices.Index(ids, id)
	if at < 0 {
		return nil
	}
	var mine []queue
	for i := at; i < len(queues); i += len(ids) {
		mine = append(mine, queues[i])
	}
	return mine
}

// start pulls a queue, unless that is being done, or its puller of a moment ago still has a batch in hand.
func (m *member) start(ctx context.Context, q queue) {
	if p := m.pullers[q.name()]; p != nil && !p.ended() {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	p := &puller{addr: q.addr, stop: stop, done: make(chan struct{})}
	m.pullers[q.name()] = p
	go func() {
		defer close(p.done)
		defer stop()
		m.follow(ctx, q)
	}()
}

func (p *puller) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stopAll stops all pullers and waits for them, so that no handler runs any more.
func (m *member) stopAll() {
	var all sync.WaitGroup
	for _, p := range m.pullers {
		p.stop()
		all.Go(func() { <-p.done })
	}
	all.Wait()
}
