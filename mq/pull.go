package mq

import (
	"context"
	"errors"
	"strconv"
	"time"

	"floodgate/mq/remoting"
)

const (
	// longPoll is how long a broker keeps a pull that finds nothing; a message that comes meanwhile is handed out at once. It also
	// bounds, with pullTime, how long a broker that is silent without a broken connection stays unnoticed: below the 5 s of the promise.
	longPoll = 2500 * time.Millisecond
	pullTime = longPoll + time.Second
)

// Bits of a pull's system flag.
const (
	pullWaits      = 1 << 1 // keep the pull where nothing is there
	pullSubscribes = 1 << 2 // the subscription stands in the request, so that a restarted broker needs no heartbeat first
)

// pulled is what one pull brought.
type pulled struct {
	messages []remoting.Message
	next     int64 // where to pull next
}

// pull takes at most n messages of a queue from an offset on. wait lets the broker keep the pull until there is something.
func (c *cluster) pull(ctx context.Context, group string, q queue, from int64, n int, wait bool) (pulled, error) {
	flag := pullSubscribes
	if wait {
		flag |= pullWaits
	}
	fields := q.fields()
	for k, v := range map[string]string{
		"consumerGroup": group, "queueOffset": strconv.FormatInt(from, 10), "maxMsgNums": strconv.Itoa(n),
		"sysFlag": strconv.Itoa(flag), "commitOffset": "0", "suspendTimeoutMillis": strconv.FormatInt(longPoll.Milliseconds(), 10),
		"subscription": "*", "subVersion": "0", "expressionType": "TAG",
	} {
		fields[k] = v
	}
	limited, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	link := c.broker(q.addr)
	reply, err := link.Call(limited, remoting.Request{Code: remoting.PullMessage, Fields: fields})
	if err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			link.Reset()
		}
		return pulled{}, err
	}
	return readPull(reply, from)
}

func readPull(reply remoting.Reply, from int64) (pulled, error) {
	switch reply.Code {
	case remoting.Success:
	case remoting.NothingYet, remoting.PullAgain, remoting.OffsetMoved:
		next, err := strconv.ParseInt(reply.Fields["nextBeginOffset"], 10, 64)
		if err != nil || reply.Code == remoting.NothingYet {
			next = from
		}
		return pulled{next: next}, nil
	default:
		return pulled{}, refused(reply)
	}
	messages, err := remoting.Messages(reply.Body)
	if err != nil {
		return pulled{}, err
	}
	if len(messages) == 0 {
		return pulled{}, errors.New("a pull that found something brought nothing")
	}
	return pulled{messages: messages, next: messages[len(messages)-1].Offset + 1}, nil
}
