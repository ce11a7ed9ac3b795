package mq

import (
	"log/slog"
	"slices"
	"testing"

	"floodgate/deploy/stacktest"
	"floodgate/mq/remoting"
)

// A broker lists a member once for each connection that it has seen a heartbeat on, for two minutes also where that has ended: it
// counts once all the same, or a queue would be nobody's.
func TestAMemberWithTwoConnectionsCountsOnce(t *testing.T) {
	t.Parallel()
	topic := stacktest.Topic(t)
	cfg := Config{Driver: "rocketmq", NameServers: []string{stacktest.NameServer(t)}, Topic: topic, Group: topic + "_group"}
	c, err := NewRocketConsumer(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	old, fresh := newCluster(c.cfg), newCluster(c.cfg)
	defer old.close()
	defer fresh.close()
	m := &member{RocketConsumer: c, cluster: fresh, id: "me"}
	queues, err := fresh.look(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(t.Context(), old.broker(queues[0].addr), remoting.Request{Code: remoting.Heartbeat, Body: m.heartbeat()}); err != nil {
		t.Fatal(err)
	}
	ids, err := m.enrol(t.Context(), queues)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the broker lists %v", ids)
	if mine := portion(queues, slices.Clone(ids), "me"); len(mine) != len(queues) {
		t.Errorf("with the list %v the only member has %d of %d queues", ids, len(mine), len(queues))
	}
}
