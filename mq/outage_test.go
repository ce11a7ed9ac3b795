package mq_test

import (
	"testing"
	"time"

	"floodgate/deploy/stacktest"
	"floodgate/mq"
	"floodgate/sale"
)

// soon is the promise: sending and consuming work again this long after the part that was killed answers.
const soon = 5 * time.Second

// One private stack for all kills, one after the other: each leaves everything running.
func TestOutage(t *testing.T) {
	t.Parallel()
	stack := stacktest.Own(t)
	cfg := mq.Config{Driver: "rocketmq", NameServers: []string{stack.Var("FLOODGATE_MQ_NAMESERVERS")}}
	o := &outage{driver: rocket(t, cfg), stack: stack}
	o.driver.queues = 8
	began := time.Now()
	o.worker = start(t, o.driver.worker())
	o.roundTrip(t)
	t.Logf("first message %v after start of producer and consumer", time.Since(began))
	for _, kill := range []struct {
		name  string
		parts []string
	}{
		{"broker", []string{stacktest.PartBroker}},
		{"name server", []string{stacktest.PartNameServer}},
		{"both", []string{stacktest.PartBroker, stacktest.PartNameServer}},
	} {
		t.Run(kill.name, func(t *testing.T) { o.kill(t, kill.parts) })
	}
	t.Run("a worker that starts while all are away", o.lateStart)
}

type outage struct {
	driver *driver
	stack  *stacktest.Stack
	worker *worker
	next   int
}

// roundTrip sends until that is acknowledged, and waits for the message; it says how long both took.
func (o *outage) roundTrip(t *testing.T) (sent, took time.Duration) {
	t.Helper()
	began := time.Now()
	o.next++
	m := messages(o.next, 1)
	eventually(t, "the producer works", func() bool { return o.driver.producer.Send(t.Context(), m) == nil })
	sent = time.Since(began)
	eventually(t, "the message arrives", func() bool { return covers(m, o.worker) })
	return sent, time.Since(began)
}

func (o *outage) kill(t *testing.T, parts []string) {
	for _, p := range parts {
		o.stack.Kill(p)
	}
	during := messages(o.next+1, 3)
	o.next += 3
	for _, m := range during { // unknown, or stored where only the name server is away
		began := time.Now()
		err := o.driver.producer.Send(t.Context(), []sale.Message{m})
		if took := time.Since(began); took > tolerance {
			t.Errorf("Send took %v during the outage: %v", took, err)
		}
	}
	for i := len(parts) - 1; i >= 0; i-- {
		o.stack.Start(parts[i])
	}
	sent, took := o.roundTrip(t)
	t.Logf("sent %v and consumed %v after the return", sent, took)
	if took > soon {
		t.Errorf("consuming %v after the return, want at most %v", took, soon)
	}
	parked(t, o.driver)
}

// lateStart begins with nothing there: a start is not blocked, and all works when the parts come.
func (o *outage) lateStart(t *testing.T) {
	o.worker.stop()
	o.worker.wait()
	o.stack.Kill(stacktest.PartBroker)
	o.stack.Kill(stacktest.PartNameServer)
	cfg := mq.Config{Driver: "rocketmq", NameServers: []string{o.stack.Var("FLOODGATE_MQ_NAMESERVERS")}}
	o.driver = rocket(t, cfg)
	o.worker = start(t, o.driver.worker())
	unanswered(t, o.driver.producer)
	o.stack.Start(stacktest.PartNameServer)
	o.stack.Start(stacktest.PartBroker)
	sent, took := o.roundTrip(t)
	t.Logf("sent %v and consumed %v after the parts came", sent, took)
	if took > soon {
		t.Errorf("consuming %v after the parts came, want at most %v", took, soon)
	}
}
