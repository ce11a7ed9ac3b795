package mq

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func names(queues []queue) string {
	var out []string
	for _, q := range queues {
		out = append(out, q.name())
	}
	return strings.Join(out, " ")
}

func queuesOf(broker string, n int) (out []queue) {
	for id := range n {
		out = append(out, queue{broker: broker, addr: broker + ":10911", id: id, read: true, write: true})
	}
	return out
}

func TestRead(t *testing.T) {
	body := `{"brokerDatas":[{"brokerName":"b","brokerAddrs":{"0":"10.0.0.2:10911","1":"10.0.0.3:10911"}},{"brokerName":"slaves","brokerAddrs":{"1":"10.0.0.4:10911"}}],
		"queueDatas":[{"brokerName":"b","readQueueNums":2,"writeQueueNums":1,"perm":6},{"brokerName":"slaves","readQueueNums":2,"writeQueueNums":2,"perm":4}]}`
	got, err := readRoute("orders", []byte(body))
	want := []queue{{topic: "orders", broker: "b", addr: "10.0.0.2:10911", id: 0, read: true, write: true}, {topic: "orders", broker: "b", addr: "10.0.0.2:10911", id: 1, read: true}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := readRoute("orders", []byte(`{0:1}`)); err == nil {
		t.Error("a route in broken JSON was read")
	}
}

// A broker that the name servers do not name is remembered beside those that they do, but not for ever.
func TestRouteLearns(t *testing.T) {
	start := time.Now()
	r := route{}.learn(append(queuesOf("b", 1), queuesOf("a", 2)...), start)
	if got := names(r.queues); got != "a:0 a:1 b:0" {
		t.Errorf("route: %s", got)
	}
	r = r.learn(queuesOf("a", 1), start.Add(time.Minute)) // b is away, a has lost a queue
	if got := names(r.queues); got != "a:0 b:0" {
		t.Errorf("while b is away: %s", got)
	}
	if got := names(r.learn(queuesOf("b", 3), start.Add(2*time.Minute)).queues); got != "a:0 b:0 b:1 b:2" {
		t.Errorf("when b is back and a is away: %s", got)
	}
	if got := names(r.learn(queuesOf("a", 1), start.Add(forget+2*time.Minute)).queues); got != "a:0" {
		t.Errorf("when b is long gone: %s", got)
	}
}

// Every queue belongs to exactly one member, shares differ by at most one, and the order of the list does not matter.
func TestPortion(t *testing.T) {
	all := queuesOf("b", 8)
	for members := 1; members <= 10; members++ {
		var ids []string
		for i := range members {
			ids = append(ids, fmt.Sprintf("worker-%d", i))
		}
		var given []queue
		for _, id := range slices.Clone(ids) {
			slices.Reverse(ids)
			mine := portion(all, ids, id)
			if n := len(mine); n < 8/members || n > (8+members-1)/members {
				t.Errorf("%d of 8 queues for one of %d", n, members)
			}
			given = append(given, mine...)
		}
		slices.SortFunc(given, byName)
		if names(given) != names(all) {
			t.Errorf("%d members share %s", members, names(given))
		}
	}
	if got := portion(all, []string{"another"}, "me"); got != nil {
		t.Errorf("a member that the broker does not know yet got %s", names(got))
	}
}
