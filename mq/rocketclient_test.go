package mq_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"floodgate/deploy/stacktest"
	"floodgate/mq"
)

// A name server may be given by its host name; the library alone takes nothing but addresses.
func TestNameServerByName(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(stacktest.NameServer(t))
	if err != nil {
		t.Fatal(err)
	}
	topic := stacktest.Topic(t)
	d := rocket(t, mq.Config{Driver: "rocketmq", NameServers: []string{"localhost:" + port}, Topic: topic, Group: topic, SendTimeout: 5 * time.Second})
	send(t, d, message(1))
}

// The library asks a silent name server for 12 s and takes no context: closing does not wait for that, or a role could not stop in time.
func TestCloseWhileNameServerIsSilent(t *testing.T) {
	t.Parallel()
	p := producerTo(t, listener(t, swallow), nil)
	unanswered(t, p)
	began := time.Now()
	p.Close()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
}

// One broker of two that is away takes one send in each probe's time, not each second batch.
func TestDeadBrokerIsPassedOver(t *testing.T) {
	t.Parallel()
	route := fmt.Sprintf(`{"brokerDatas":[{"brokerName":"away","brokerAddrs":{"0":"127.0.0.1:1"}},{"brokerName":"there","brokerAddrs":{"0":%q}}],
		"queueDatas":[{"brokerName":"away","readQueueNums":4,"writeQueueNums":4,"perm":6},{"brokerName":"there","readQueueNums":4,"writeQueueNums":4,"perm":6}]}`,
		answering(t, ""))
	p := producerTo(t, answering(t, route), nil)
	const sends = 40
	lost := 0
	for range sends {
		if p.Send(t.Context(), messages(1, 2)) != nil {
			lost++
		}
	}
	if lost > 4 {
		t.Errorf("%d of %d sends were lost to a broker that is away", lost, sends)
	}
}
