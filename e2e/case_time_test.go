package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/sale"
)

// slack is how much longer than promised things may take here: the binary has the race detector in it and two cores
// carry the whole installation, its stores and the crowd.
const slack = 3

// The list may lag, but it never shows less than nothing or more than there was, by reading and by push.
func case37(r *rig) {
	const total, people = 20, 30
	activity := r.activity(map[sale.ID]int64{1: total, 2: total})
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	var looks, pushes atomic.Int64
	check := func(where string, remaining float64, soldOut bool) {
		if remaining < 0 || remaining > total || soldOut != (remaining == 0) {
			r.t.Errorf("%s shows %v, sold out %v", where, remaining, soldOut)
		}
	}
	for i, path := range []string{"/api/activities", "/api/activities", "/api/activities/" + activity.String(), "/api/activities/" + activity.String()} {
		watching.Go(func() {
			poll(ctx, time.Minute, func() bool {
				for _, s := range shownIn(r.send(at(i), "GET", path, "", nil), activity) {
					check(path, s.Remaining, s.SoldOut)
					looks.Add(1)
				}
				return false
			})
		})
	}
	s := r.socket(r.person().jwt, nil)
	s.say("subscribe", "activityId", activity.String())
	watching.Go(func() {
		s.hear(func(m said) {
			for _, i := range m.Items {
				check("the socket", i.Remaining, i.SoldOut)
				pushes.Add(1)
			}
		})
	})
	got := crowd(people, func(i int) reply { a, _ := r.person().buy(at(i), activity, 1, 1); return a })
	r.told("30 for 20", got, map[string]int{"accepted": total, "sold_out": people - total})
	began := time.Now()
	r.eventually(time.Second*slack, "both edges show it as sold out", func() bool {
		for i := range 2 {
			items := shownIn(r.send(at(i), "GET", "/api/activities", "", nil), activity)
			if len(items) != 2 || items[0].Remaining != 0 || items[1].Remaining != total {
				return false
			}
		}
		return true
	})
	r.t.Logf("shown %s after the last answer; %d looks, %d pushes", time.Since(began).Round(time.Millisecond), looks.Load(), pushes.Load())
	r.books(activity)
	cancel()
	s.ws.Close()
	watching.Wait()
	if looks.Load() == 0 || pushes.Load() == 0 {
		r.t.Errorf("%d looks, %d pushes", looks.Load(), pushes.Load())
	}
}

// shownItem is an item as the list and the sockets show it.
type shownItem struct {
	CommodityID sale.ID
	Remaining   float64
	SoldOut     bool
}

// shownIn finds an activity's items in the list or in its own document, by their ids.
func shownIn(a reply, activity sale.ID) []shownItem {
	type one struct {
		ID    sale.ID
		Items []shownItem
	}
	var v struct {
		one
		Activities []one
	}
	if a.status != http.StatusOK || json.Unmarshal(a.body, &v) != nil {
		return nil
	}
	for _, x := range append(v.Activities, v.one) {
		if x.ID == activity {
			slices.SortFunc(x.Items, func(a, b shownItem) int { return int(a.CommodityID - b.CommodityID) })
			return x.Items
		}
	}
	return nil
}

// A window begins and ends at an instant: the offset in the file decides, whatever the time zone of a process, and the
// millisecond is Redis's.
func case38(r *rig) {
	var zone string
	if err := r.db.QueryRow("SELECT @@system_time_zone").Scan(&zone); err != nil || zone != "UTC" {
		r.t.Errorf("the database lives in %q: %v", zone, err)
	}
	if log, err := os.ReadFile(filepath.Join(r.dir, "edge-1.log")); !strings.Contains(string(log), "-05:00") {
		r.t.Errorf("edge-1 does not live in New York: %v", err)
	}
	singles := r.offer(offer{totals: map[sale.ID]int64{1: 10}, starts: "2026-11-11T00:00:00+08:00"})
	equal(r, "startsAt", r.send("edge-1", "GET", "/api/activities/"+singles.String(), "", nil).field("startsAt"), any(float64(1794326400000)))
	out, err := r.command("activity", "show", singles.String(), "-o", "json")
	if err != nil || !strings.Contains(out, "1794326400000") {
		r.t.Errorf("activity show: %v %s", err, out)
	}

	starts := time.Now().Add(5 * time.Second).Truncate(time.Second)
	ends := starts.Add(2 * time.Second)
	kolkata := time.FixedZone("", 5*3600+1800) // an offset of nobody here
	activity := r.offer(offer{totals: map[sale.ID]int64{1: 100_000}, starts: starts.In(kolkata).Format(time.RFC3339Nano), ends: ends.UTC().Format(time.RFC3339Nano)})
	far, _ := r.person().early("edge-1", activity, 1)
	equal(r, "seconds before", fmt.Sprint(far.status, " ", far.code()), "425 not_started")
	equal(r, "startsAt in the refusal", far.field("error", "startsAt"), any(float64(starts.UnixMilli())))
	equal(r, "a request token before the start", r.person().send("edge-1", "POST", tokenPath(activity), "{}").code(), "not_started")
	seen := r.across(activity, starts, ends)
	for what, n := range seen {
		r.t.Logf("%s: %d", what, n)
	}
	for _, what := range []string{"before not_started", "within accepted", "after ended"} {
		if seen[what] < 5 {
			r.t.Errorf("%d answers %s", seen[what], what)
		}
	}
	late, _ := r.person().early("edge-2", activity, 1)
	equal(r, "after the end", fmt.Sprint(late.status, " ", late.code()), "410 ended")
	r.books(activity)
	r.withinWindow(activity, starts.UnixMilli(), ends.UnixMilli())
	equal(r, "rows", r.rows(activity, ""), int(seen["within accepted"]+seen["near a boundary accepted"]))
}

// early clicks with a token that needs no edge: before the start none is handed out.
func (p *person) early(edge string, activity, item sale.ID) (reply, sale.Token) {
	token := p.rig.sign(p.id, activity)
	return p.send(edge, "POST", buyPath(activity, item), buyBody(token, 1)), token
}

// across clicks from just before the start to just after the end. An answer that lies on one side of a boundary with its
// whole way must say so; all clocks here are one machine's.
func (r *rig) across(activity sale.ID, starts, ends time.Time) map[string]int64 {
	var mu sync.Mutex
	seen := map[string]int64{}
	ctx, cancel := context.WithDeadline(context.Background(), ends.Add(200*time.Millisecond))
	defer cancel()
	poll(ctx, time.Until(starts)-200*time.Millisecond, func() bool { return false })
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for i := k; ctx.Err() == nil; i++ {
				sent := time.Now().Truncate(time.Millisecond)
				a, _ := r.person().early(at(i), activity, 1)
				answered := time.Now().Truncate(time.Millisecond)
				where, want := "near a boundary", a.code()
				switch {
				case answered.Before(starts):
					where, want = "before", "not_started"
				case !sent.Before(starts) && answered.Before(ends):
					where, want = "within", "accepted"
				case !sent.Before(ends):
					where, want = "after", "ended"
				}
				equal(r, fmt.Sprintf("sent %s, answered %s after the start", sent.Sub(starts), answered.Sub(starts)), a.code(), want)
				mu.Lock()
				seen[where+" "+a.code()]++
				mu.Unlock()
				if near := min(time.Since(starts).Abs(), time.Since(ends).Abs()); near > 100*time.Millisecond {
					poll(ctx, 60*time.Millisecond, func() bool { return false })
				}
			}
		})
	}
	all.Wait()
	return seen
}

// withinWindow demands that every unit was taken inside the window, to the millisecond, by Redis's own record.
func (r *rig) withinWindow(activity sale.ID, starts, ends int64) {
	r.t.Helper()
	first, last := int64(1<<62), int64(0)
	entries, err := r.rdb.XRange(context.Background(), "seckill:{"+activity.String()+".0}:ledger", "-", "+").Result()
	for _, e := range entries {
		if e.Values["op"] == "reserve" {
			at, _ := strconv.ParseInt(fmt.Sprint(e.Values["at"]), 10, 64)
			first, last = min(first, at), max(last, at)
		}
	}
	if err != nil || first < starts || last >= ends {
		r.t.Errorf("taken from %d ms after the start to %d ms before the end: %v", first-starts, ends-last, err)
	}
	r.t.Logf("first unit %d ms after the start, last %d ms before the end", first-starts, ends-last)
}

// All keys of a cell lie in one slot of a Redis Cluster, and activities spread over the slots.
func case42(r *rig) {
	ctx := context.Background()
	activity := r.activity(map[sale.ID]int64{1: 10, 2: 5})
	p := r.person()
	a, token := p.buy("edge-1", activity, 1, 1)
	equal(r, "a buy", a.code(), "accepted")
	p.final("edge-1", token, 30*time.Second)
	r.books(activity)
	cluster := r.clusterNode()
	slots := map[int64]sale.ID{}
	const others = 200
	for id := activity; id < activity+others; id++ {
		slots[cluster.ClusterKeySlot(ctx, stockKey(id)).Val()] = id
	}
	keys, err := r.rdb.Keys(ctx, "seckill:{"+activity.String()+".0}:*").Result()
	if err != nil || len(keys) < 6 {
		r.t.Errorf("keys of the cell: %v %v", keys, err)
	}
	want := cluster.ClusterKeySlot(ctx, stockKey(activity)).Val()
	for _, k := range keys {
		slot, err := cluster.ClusterKeySlot(ctx, k).Result()
		if slot != want || err != nil {
			r.t.Errorf("%s lies in slot %d (%v), the stock in %d", k, slot, err, want)
		}
	}
	if len(slots) < others*9/10 {
		r.t.Errorf("%d activities lie in %d slots", others, len(slots))
	}
}

// clusterNode is an empty Redis of its own that is in cluster mode, which the stack's is not.
func (r *rig) clusterNode() *redis.Client {
	addr := freePort(r.t)
	_, port, _ := strings.Cut(addr, ":")
	_, bus, _ := strings.Cut(freePort(r.t), ":")
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--cluster-enabled", "yes", "--cluster-port", bus, "--dir", r.t.TempDir(), "--save", "", "--logfile", "redis.log")
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: addr})
	r.t.Cleanup(func() { c.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r.eventually(10*time.Second, "a Redis in cluster mode answers", func() bool { return c.Ping(context.Background()).Err() == nil })
	return c
}
