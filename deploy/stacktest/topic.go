package stacktest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"floodgate/mq/remoting"
)

// Codes of the requests that only an operator makes.
const (
	codeCreateTopic     = 17
	codeDeleteInBroker  = 215
	codeDeleteInNameSrv = 216
)

const (
	queues               = "4"
	answerWithin         = 5 * time.Second
	routeAskedAgainEvery = 20 * time.Millisecond
)

// Topic makes a topic with four queues, and NAME_dead beside it for dead letters, and returns NAME once the name
// server knows the way to both (some 40 ms). Both are deleted when the test ends: stop consumers before that.
func Topic(t testing.TB) string {
	t.Helper()
	broker, nameServer := variable(t, "FLOODGATE_TEST_BROKER"), NameServer(t)
	name := "test_" + unique()
	for _, topic := range []string{name, name + "_dead"} {
		if err := createTopic(broker, nameServer, topic); err != nil {
			t.Fatalf("cannot create topic %s: %v", topic, err)
		}
		t.Cleanup(func() {
			if err := deleteTopic(broker, nameServer, topic); err != nil {
				t.Errorf("cannot delete topic %s: %v", topic, err)
			}
		})
	}
	return name
}

func createTopic(broker, nameServer, topic string) error {
	err := ask(broker, codeCreateTopic, map[string]string{
		"topic": topic, "readQueueNums": queues, "writeQueueNums": queues, "order": "false",
		"defaultTopic": "TBW102", // RocketMQ's own template: the request must name one
		"perm":         "6",      // read and write
		"topicSysFlag": "0", "topicFilterType": "SINGLE_TAG",
	})
	if err != nil {
		return err
	}
	// The broker tells the name server beside its answer to us.
	deadline := time.After(answerWithin)
	again := time.NewTicker(routeAskedAgainEvery)
	defer again.Stop()
	for {
		err := routed(nameServer, topic)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-deadline:
			return fmt.Errorf("no route after %v: %w", answerWithin, err)
		}
	}
}

// routed fails unless the name server knows the way to a topic.
func routed(nameServer, topic string) error {
	return ask(nameServer, remoting.RouteOfTopic, map[string]string{"topic": topic})
}

func deleteTopic(broker, nameServer, topic string) error {
	if err := ask(broker, codeDeleteInBroker, map[string]string{"topic": topic}); err != nil {
		return err
	}
	return ask(nameServer, codeDeleteInNameSrv, map[string]string{"topic": topic})
}

// ask sends one request and fails unless it succeeds. The client library's admin takes seconds to start and stop.
func ask(addr string, code int, fields map[string]string) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	link := remoting.NewLink(addr)
	defer link.Close()
	reply, err := link.Call(ctx, remoting.Request{Code: code, Fields: fields})
	if err != nil {
		return err
	}
	if reply.Code != remoting.Success {
		return fmt.Errorf("%s refused with code %d: %s", addr, reply.Code, reply.Remark)
	}
	return nil
}
