package e2e

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"floodgate/sale"
)

// promise is an accepted order on its way: who, and under which token.
type promise struct {
	by    *person
	token sale.Token
}

// accepted buys one unit and demands that it is accepted.
func (r *rig) accepted(edge string, activity, item sale.ID) promise {
	r.t.Helper()
	p := r.person()
	a, token := p.buy(edge, activity, item, 1)
	equal(r, "a buy", a.code(), "accepted")
	return promise{p, token}
}

// workers sends a signal to both workers: SIGSTOP freezes them as a pause of the whole machine would.
func (r *rig) workers(s syscall.Signal) {
	r.t.Helper()
	for _, name := range []string{"worker-1", "worker-2"} {
		if err := r.procs[name].cmd.Process.Signal(s); err != nil {
			r.t.Errorf("%s: %v", name, err)
		}
	}
}

// Two tokens of one user while nobody places: the second is refused at once and names the first.
func case06(r *rig) {
	activity := r.activity(map[sale.ID]int64{1: 10})
	p := r.person()
	r.workers(syscall.SIGSTOP)
	first, token := p.buy("edge-1", activity, 1, 1)
	second, _ := p.buy("edge-2", activity, 1, 1)
	stock := r.redisStock(activity, 1)
	r.workers(syscall.SIGCONT)
	equal(r, "first", first.code(), "accepted")
	equal(r, "second", second.code(), "duplicate")
	equal(r, "the second names", second.field("error", "requestToken"), any(string(token)))
	equal(r, "Redis holds", stock, "9")
	equal(r, "outcome", p.final("edge-1", token, 30*time.Second).code(), "pending_payment")
	equal(r, "remaining", r.books(activity)[1].Remaining, 9)
	equal(r, "rows", r.rows(activity, ""), 1)
}

// Redis holds one unit more than there is: the database decides, the loser's unit and slot come back, the audit tells.
func case08(r *rig) {
	ctx := context.Background()
	activity := r.activity(map[sale.ID]int64{1: 1})
	if err := r.rdb.HIncrBy(ctx, stockKey(activity), "1", 1).Err(); err != nil {
		r.t.Fatal(err)
	}
	r.workers(syscall.SIGSTOP)
	both := []promise{r.accepted("edge-1", activity, 1), r.accepted("edge-2", activity, 1)}
	r.workers(syscall.SIGCONT)
	told := map[string]int{}
	var loser promise
	for _, b := range both {
		a := b.by.final("edge-1", b.token, 30*time.Second)
		told[a.code()]++
		if a.code() == "failed" {
			loser = b
			equal(r, "reason", a.field("reason"), any("sold_out"))
		}
	}
	r.told("two messages for one unit", told, map[string]int{"pending_payment": 1, "failed": 1})
	equal(r, "live rows", r.rows(activity, "AND state = 0"), 1)
	equal(r, "failed rows", r.rows(activity, "AND state = 4"), 1)
	equal(r, "Redis holds the loser's unit again", r.redisStock(activity, 1), "1")
	if loser.by != nil {
		field := loser.by.id.String() + ":1"
		if held, err := r.rdb.HExists(ctx, "seckill:{"+activity.String()+".0}:buyers", field).Result(); held || err != nil {
			r.t.Errorf("the loser holds its slot: %v %v", held, err)
		}
	}
	a := r.auditOf(activity)
	if a.exit0 || a.Balanced || len(a.Activities[0].Faults) != 1 || a.Activities[0].Faults[0].Check != "sum" || a.Activities[0].Items[0].Difference != -1 {
		r.t.Errorf("the audit of one unit too many: %+v", a)
	}
	if err := r.rdb.HIncrBy(ctx, stockKey(activity), "1", -1).Err(); err != nil {
		r.t.Fatal(err)
	}
	equal(r, "remaining", r.books(activity)[1].Remaining, 0)
}

// One order of a batch cannot be: its buyer is told so, all others get theirs.
func case12(r *rig) {
	const others = 9
	activity := r.activity(map[sale.ID]int64{1: 20})
	p := r.person()
	// A live order of another path holds the only slot of u1; Redis does not know.
	slot := []any{int64(p.id), int64(activity)}
	if _, err := r.db.Exec("INSERT INTO slots (user_id, activity_id, commodity_id, slot, order_no) VALUES (?, ?, 1, 0, 1)", slot...); err != nil {
		r.t.Fatal(err)
	}
	r.workers(syscall.SIGSTOP)
	queued := []promise{r.accepted("edge-1", activity, 1)}
	a, token := p.buy("edge-1", activity, 1, 1)
	equal(r, "u1", a.code(), "accepted")
	for i := 1; i < others; i++ {
		queued = append(queued, r.accepted(at(i), activity, 1))
	}
	r.workers(syscall.SIGCONT)
	failed := p.final("edge-2", token, 30*time.Second)
	equal(r, "u1", fmt.Sprint(failed.code(), " ", failed.field("reason"), " ", failed.field("orderNo")), "failed duplicate <nil>")
	for _, q := range queued {
		equal(r, "the others", q.by.final("edge-1", q.token, 30*time.Second).code(), "pending_payment")
	}
	if _, err := r.db.Exec("DELETE FROM slots WHERE user_id = ? AND activity_id = ?", slot...); err != nil {
		r.t.Fatal(err)
	}
	equal(r, "remaining", r.books(activity)[1].Remaining, 20-others)
	again, token := p.buy("edge-2", activity, 1, 1)
	equal(r, "u1 later", again.code(), "accepted")
	equal(r, "u1 later", p.final("edge-1", token, 30*time.Second).code(), "pending_payment")
	r.books(activity)
}

// The edge dies after the reservation, after the queue has it, or the queue is away: the order comes all the same, and the
// buyer hears of it by push and by poll.
func case11(r *rig) {
	activity := r.activity(map[sale.ID]int64{1: 5})
	var all []promise
	for _, point := range []string{"edge.reserved", "edge.enqueued"} {
		r.procs["edge-1"].kill()
		r.procs["edge-1"].run("FLOODGATE_CRASHPOINT=" + point + ":1")
		r.shown(activity, "edge-1")
		p := r.person()
		s := r.socket(p.jwt, nil)
		token := p.tokenAt("edge-2", activity)
		s.say("watch", "requestToken", string(token))
		equal(r, point+": the answer", p.send("edge-1", "POST", buyPath(activity, 1), buyBody(token, 1)).status, 0)
		r.placed(point, s, promise{p, token})
		revive("edge-1")(r, nil)
		r.shown(activity, "edge-1")
		equal(r, point+": asked again", p.send("edge-1", "POST", buyPath(activity, 1), buyBody(token, 1)).code(), "accepted")
		all = append(all, promise{p, token})
	}
	r.stack.Kill("broker")
	p := r.person()
	s := r.socket(p.jwt, nil)
	token := p.token(activity)
	s.say("watch", "requestToken", string(token))
	began := time.Now()
	equal(r, "without the queue", p.send("edge-2", "POST", buyPath(activity, 1), buyBody(token, 1)).code(), "accepted")
	if took := time.Since(began); took > time.Second*slack {
		r.t.Errorf("accepted only after %s", took)
	}
	r.placed("without the queue", s, promise{p, token})
	r.stack.Start("broker")
	equal(r, "remaining", r.books(activity)[1].Remaining, 2)
	equal(r, "rows", r.rows(activity, ""), len(all)+1)
}

// tokenAt gets a request token from one edge alone.
func (p *person) tokenAt(edge string, activity sale.ID) sale.Token {
	token, _ := p.send(edge, "POST", tokenPath(activity), "{}").field("requestToken").(string)
	return sale.Token(token)
}

// placed demands the order within 60 s, the same by push and by poll.
func (r *rig) placed(what string, s *socket, p promise) {
	r.t.Helper()
	defer s.ws.Close()
	began := time.Now()
	_ = s.ws.SetReadDeadline(began.Add(60 * time.Second))
	var m said
	for m.Type != "outcome" || m.Outcome == "accepted" {
		if err := s.ws.ReadJSON(&m); err != nil {
			r.t.Errorf("%s: no final outcome by push: %v", what, err)
			break
		}
	}
	r.t.Logf("%s: %s by push after %s", what, m.Outcome, time.Since(began).Round(time.Millisecond))
	a := p.by.final("edge-2", p.token, time.Until(began.Add(60*time.Second)))
	equal(r, what+": push and poll", fmt.Sprint(m.Outcome, " ", m.OrderNo), fmt.Sprint(a.code(), " ", a.field("orderNo")))
	equal(r, what+": outcome", a.code(), "pending_payment")
	order := p.by.get("edge-2", fmt.Sprintf("/api/orders/%v", a.field("orderNo")))
	equal(r, what+": the order", order.status, http.StatusOK)
}
