package e2e

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"floodgate/sale"
)

// The last unit goes to exactly one of two, a hundred times.
func case01(r *rig) {
	const rounds = 100
	totals := map[sale.ID]int64{}
	for i := range rounds {
		totals[sale.ID(i+1)] = 1
	}
	activity := r.offer(offer{totals: totals})
	people := []*person{r.person(), r.person()}
	for i := range rounds {
		item := sale.ID(i + 1)
		tokens := []sale.Token{people[0].token(activity), people[1].token(activity)}
		got := crowd(2, func(k int) reply {
			return people[k].send(at(i+k), "POST", buyPath(activity, item), buyBody(tokens[k], 1))
		})
		r.told(fmt.Sprintf("round %d", i+1), got, map[string]int{"accepted": 1, "sold_out": 1})
	}
	for item, s := range r.books(activity) {
		if s.Remaining != 0 || s.LiveUnits != 1 {
			r.t.Errorf("item %s: %+v", item, s)
		}
	}
	equal(r, "rows", r.rows(activity, ""), rounds)
}

// The whole stock and some of it at once: one wins, and who asked for more than is left has not sold it out for others.
func case02(r *rig) {
	const rounds = 10
	totals := map[sale.ID]int64{}
	for i := range rounds {
		totals[sale.ID(i+1)] = 12
	}
	activity := r.offer(offer{totals: totals, limit: 12})
	want := map[sale.ID]int64{}
	for item := range totals {
		quantity := []int{12, 2}
		people := []*person{r.person(), r.person()}
		tokens := []sale.Token{people[0].token(activity), people[1].token(activity)}
		won := make(chan int, 2)
		got := crowd(2, func(k int) reply {
			a := people[k].send(at(int(item)+k), "POST", buyPath(activity, item), buyBody(tokens[k], quantity[k]))
			if a.status == http.StatusAccepted {
				won <- quantity[k]
			}
			return a
		})
		r.told(fmt.Sprintf("item %s", item), got, map[string]int{"accepted": 1, "sold_out": 1})
		if len(won) == 1 {
			want[item] = 12 - int64(<-won)
		}
		if want[item] == 10 {
			a, _ := r.person().buy(at(int(item)), activity, item, 10)
			equal(r, "ten of ten that are left", a.code(), "accepted")
			want[item] = 0
		}
	}
	for item, s := range r.books(activity) {
		equal(r, "remaining of item "+item.String(), s.Remaining, want[item])
	}
}

// A hundred buys of one user take one unit, and leave the rest to the others.
func case05(r *rig) {
	activity := r.activity(map[sale.ID]int64{1: 10})
	first := r.person()
	got := crowd(100, func(i int) reply { a, _ := first.buy(at(i), activity, 1, 1); return a })
	r.told("u1", got, map[string]int{"accepted": 1, "duplicate": 99})
	got = crowd(9, func(i int) reply { a, _ := r.person().buy(at(i), activity, 1, 1); return a })
	r.told("u2 to u10", got, map[string]int{"accepted": 9})
	equal(r, "remaining", r.books(activity)[1].Remaining, 0)
	equal(r, "rows of u1", r.rows(activity, "AND user_id = ?", int64(first.id)), 1)
}

// The limit holds against tokens in parallel on two edges, and duplicate names what the buyer has.
func case07(r *rig) {
	const many = 64
	activity := r.activity(map[sale.ID]int64{1: 100})
	p := r.person()
	tokens := make([]sale.Token, many)
	for i := range tokens {
		tokens[i] = p.token(activity)
	}
	replies := make([]reply, many)
	got := crowd(many, func(i int) reply {
		replies[i] = p.send(at(i), "POST", buyPath(activity, 1), buyBody(tokens[i], 1))
		return replies[i]
	})
	r.told("64 tokens", got, map[string]int{"accepted": 1, "duplicate": many - 1})
	var winner string
	for i, a := range replies {
		if a.status == http.StatusAccepted {
			winner = string(tokens[i])
		}
	}
	for _, a := range replies {
		if a.status == http.StatusConflict {
			equal(r, "the token that duplicate names", a.field("error", "requestToken"), any(winner))
		}
	}
	order := p.final("edge-1", sale.Token(winner), 30*time.Second).field("orderNo")
	again, _ := p.buy("edge-2", activity, 1, 1)
	equal(r, "duplicate names the order", again.field("error", "orderNo"), order)
	equal(r, "remaining", r.books(activity)[1].Remaining, 99)
	equal(r, "rows", r.rows(activity, ""), 1)
}

// Redis loses the stock of a running sale and nothing else: nobody is told a lie, and nothing goes below zero.
func case14a(r *rig) {
	ctx := context.Background()
	activity := r.activity(map[sale.ID]int64{1: 10, 2: 10})
	first := r.person()
	a, token := first.buy("edge-1", activity, 1, 1)
	equal(r, "before", a.code(), "accepted")
	first.final("edge-1", token, 30*time.Second)
	if err := r.rdb.Del(ctx, stockKey(activity)).Err(); err != nil {
		r.t.Fatal(err)
	}
	began := time.Now()
	for n := 0; n < 40 || time.Since(began) < 2500*time.Millisecond; n += 20 { // past the next readings of the catalog
		got := crowd(20, func(i int) reply { a, _ := r.person().early(at(i), activity, sale.ID(1+i/2%2)); return a })
		r.told("without stock", got, map[string]int{"busy": 20})
	}
	equal(r, "u1 again", first.send("edge-2", "POST", buyPath(activity, 1), buyBody(token, 1)).code(), "busy")
	equal(r, "u1 has its order", first.get("edge-2", "/api/requests/"+string(token)).code(), "pending_payment")
	if n, err := r.rdb.Exists(ctx, stockKey(activity)).Result(); n != 0 || err != nil {
		r.t.Errorf("the stock's key came back by itself: %d %v", n, err)
	}
	equal(r, "the audit sees it", r.auditOf(activity).exit0, false)
	if err := r.rdb.HSet(ctx, stockKey(activity), "1", 9, "2", 10).Err(); err != nil {
		r.t.Fatal(err)
	}
	r.eventually(10*time.Second, "the sale goes on", func() bool {
		a, _ := r.person().early("edge-2", activity, 2)
		return a.code() == "accepted"
	})
	equal(r, "remaining", r.books(activity)[1].Remaining, 9)
}

// One token is one order, whoever repeats it; with another wish it is refused, and to others it says nothing.
func case32(r *rig) {
	activity, other := r.offer(offer{totals: map[sale.ID]int64{1: 5, 2: 5}, limit: 3}), r.offer(offer{totals: map[sale.ID]int64{1: 5}, limit: 3})
	p, thief := r.person(), r.person()
	token := p.token(activity)
	replies := make([]reply, 20)
	buy := func(i int) reply {
		return p.send(at(i), "POST", buyPath(activity, 1), buyBody(token, 2))
	}
	got := crowd(20, func(i int) reply { replies[i] = buy(i); return replies[i] })
	r.told("20 times", got, map[string]int{"accepted": 20})
	for _, a := range replies {
		equal(r, "the answer", string(a.body), string(replies[0].body))
	}
	for _, when := range []string{"at once", "with an order"} {
		for what, path := range map[string][2]any{
			"another quantity": {buyPath(activity, 1), 1},
			"another item":     {buyPath(activity, 2), 2},
		} {
			a := p.send(at(len(what)), "POST", path[0].(string), buyBody(token, path[1]))
			equal(r, when+", "+what, fmt.Sprint(a.status, " ", a.code()), "409 token_reused")
		}
		equal(r, when+", another activity", p.send("edge-1", "POST", buyPath(other, 1), buyBody(token, 2)).code(), "bad_request_token")
		a := thief.send("edge-2", "POST", buyPath(activity, 1), buyBody(token, 2))
		equal(r, when+", another user", fmt.Sprint(a.status, " ", a.code()), "403 bad_request_token")
		for _, secret := range []string{p.id.String(), string(token), "orderNo"} {
			if contains(a, secret) {
				r.t.Errorf("another user's use leaks %s: %s", secret, a.body)
			}
		}
		equal(r, when+", the same again", string(buy(1).body), string(replies[0].body))
		p.final("edge-1", token, 30*time.Second)
	}
	for _, forged := range []sale.Token{"", token[:58], token + "A", sale.Token(flip(string(token)))} {
		if a := p.send("edge-1", "POST", buyPath(activity, 1), buyBody(forged, 2)); a.code() != "bad_request_token" && a.code() != "bad_request" {
			r.t.Errorf("token %q: %d %s", forged, a.status, a.body)
		}
	}
	equal(r, "remaining", r.books(activity)[1].Remaining, 3)
	equal(r, "rows", r.rows(activity, ""), 1)
	equal(r, "rows of the other activity", r.rows(other, ""), 0)
}

// flip changes one character in the middle of a token.
func flip(token string) string {
	b := []byte(token)
	if b[20]++; b[20] > 'z' || b[20] == '[' || b[20] == ':' {
		b[20] = 'a'
	}
	return string(b)
}
