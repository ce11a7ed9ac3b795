package stacktest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// Codes of RocketMQ's remoting protocol.
const (
	codeCreateTopic       = 17
	codeRoute             = 105
	codeDeleteInBroker    = 215
	codeDeleteInNameSrv   = 216
	maxReply              = 1 << 20 // bytes; a route of two queues has some hundreds
	queues                = "4"
	answerWithin          = 5 * time.Second
	routeAskedAgainEvery  = 20 * time.Millisecond
	topicReadAndWrite     = "6"
	topicCopiedByDefaults = "TBW102" // RocketMQ's own template topic; the request must name one
)

// Topic makes a topic with four queues, and NAME_dead beside it for dead letters, and returns NAME once the name
// server knows the way to both (some 20 ms). Both are deleted when the test ends: stop consumers before that.
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
	err := remote(broker, codeCreateTopic, map[string]string{
		"topic": topic, "defaultTopic": topicCopiedByDefaults, "readQueueNums": queues, "writeQueueNums": queues,
		"perm": topicReadAndWrite, "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	})
	if err != nil {
		return err
	}
	// The broker tells the name server beside its answer to us.
	deadline := time.After(answerWithin)
	again := time.NewTicker(routeAskedAgainEvery)
	defer again.Stop()
	for {
		err := remote(nameServer, codeRoute, map[string]string{"topic": topic})
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

func deleteTopic(broker, nameServer, topic string) error {
	if err := remote(broker, codeDeleteInBroker, map[string]string{"topic": topic}); err != nil {
		return err
	}
	return remote(nameServer, codeDeleteInNameSrv, map[string]string{"topic": topic})
}

// remote sends one request and fails unless it is answered with code 0. A frame is: length of the rest, length of the
// header (its top byte 0 means JSON), header, body. The client library's admin takes seconds to start and stop.
func remote(addr string, code int, fields map[string]string) error {
	conn, err := net.DialTimeout("tcp", addr, answerWithin)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return err
	}
	header, err := json.Marshal(map[string]any{
		"code": code, "flag": 0, "language": "GO", "opaque": 1, "version": 0, "extFields": fields,
	})
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	if _, err := conn.Write(append(frame, header...)); err != nil {
		return err
	}
	return replied(conn)
}

func replied(r io.Reader) error {
	var length struct{ Frame, Header uint32 }
	if err := binary.Read(r, binary.BigEndian, &length); err != nil {
		return err
	}
	if length.Header > maxReply {
		return fmt.Errorf("a reply's header of %d bytes", length.Header)
	}
	header := make([]byte, length.Header)
	if _, err := io.ReadFull(r, header); err != nil {
		return err
	}
	var reply struct {
		Code   int
		Remark string
	}
	if err := json.Unmarshal(header, &reply); err != nil {
		return err
	}
	if reply.Code != 0 {
		return fmt.Errorf("refused with code %d: %s", reply.Code, reply.Remark)
	}
	return nil
}
