package edge

import (
	"strconv"
	"testing"

	"floodgate/lua"
	"floodgate/sale"
)

func TestCase01LastUnitGoesToOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on func(*setup)) {
		const rounds = 100
		all := make([]sale.Activity, rounds)
		for i := range all {
			all[i] = newActivity(1, 1)
		}
		s := newShop(t, on, selling(all...))
		for _, a := range all {
			users := []sale.ID{newID(), newID()}
			got := s.tally(2, func(i int) (answerOf, error) { return s.buy(a, users[i], s.requestToken(users[i], a.ID), "1") })
			if got[sale.Accepted] != 1 || got[sale.SoldOut] != 1 {
				t.Fatalf("got %v, want one accepted and one sold_out", got)
			}
		}
		want(t, "messages", len(s.queue.all()), rounds)
	})
}

func TestCase02TheWholeStockAndSome(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on func(*setup)) {
		a := newActivity(12, 12)
		s := newShop(t, on, selling(a))
		quantity := []string{"12", "2"}
		got := s.tally(2, func(i int) (answerOf, error) {
			u := newID()
			return s.buy(a, u, s.requestToken(u, a.ID), quantity[i])
		})
		if got[sale.Accepted] != 1 || got[sale.SoldOut] != 1 {
			t.Errorf("got %v, want one accepted and one sold_out", got)
		}
		left := s.remaining(a)
		if left != 0 && left != 10 {
			t.Errorf("remaining %d", left)
		}
		if left == 10 { // who asked for more than is left has not sold the item out for others
			u := newID()
			want(t, "another", s.mustBuy(a, u, s.requestToken(u, a.ID), "10").told(t), sale.Accepted)
		}
	})
}

func TestCase05OneUserAgainstAll(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on func(*setup)) {
		a := newActivity(10, 1)
		s := newShop(t, on, selling(a))
		first := newID()
		got := s.tally(100, func(int) (answerOf, error) { return s.buy(a, first, s.requestToken(first, a.ID), "1") })
		if got[sale.Accepted] != 1 || got[sale.Duplicate] != 99 {
			t.Errorf("u1: got %v, want 1 accepted, 99 duplicate", got)
		}
		got = s.tally(9, func(int) (answerOf, error) {
			u := newID()
			return s.buy(a, u, s.requestToken(u, a.ID), "1")
		})
		want(t, "u2..u10 accepted", got[sale.Accepted], 9)
		want(t, "remaining", s.remaining(a), 0)
	})
}

func TestCase07LimitAgainstParallelTokens(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on func(*setup)) {
		a := newActivity(100, 1)
		s := newShop(t, on, selling(a))
		u := newID()
		got := s.tally(64, func(int) (answerOf, error) { return s.buy(a, u, s.requestToken(u, a.ID), "1") })
		if got[sale.Accepted] != 1 || got[sale.Duplicate] != 63 {
			t.Errorf("got %v, want 1 accepted, 63 duplicate", got)
		}
		want(t, "remaining", s.remaining(a), 99)
		again := s.mustBuy(a, u, s.requestToken(u, a.ID), "1")
		want(t, "again", again.told(t), sale.Duplicate)
		first := s.queue.all()[0]
		_, err := s.ledger.Commit(t.Context(), lua.Cell{Activity: a.ID}, []lua.Settlement{{Commodity: first.Commodity, Quantity: 1,
			Outcome: sale.Outcome{User: u, Token: first.Token, Outcome: sale.PendingPayment, OrderNo: 77, PayBy: 5, At: 4}}})
		must(t, err)
		placed := s.mustBuy(a, u, s.requestToken(u, a.ID), "1")
		want(t, "names the order", placed.field(t, "error", "orderNo"), any("77"))
		want(t, "names the live token", again.field(t, "error", "requestToken"), any(string(s.queue.all()[0].Token)))
	})
}

func TestCase32OneTokenTwentyTimes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on func(*setup)) {
		a := newActivity(5, 3)
		a.Items = append(a.Items, sale.Item{Commodity: newID(), Title: "Other", Price: 100, Total: 5})
		s := newShop(t, on, selling(a))
		u := newID()
		token := s.requestToken(u, a.ID)
		got := s.tally(20, func(int) (answerOf, error) { return s.buy(a, u, token, "1") })
		want(t, "accepted", got[sale.Accepted], 20)
		want(t, "remaining", s.remaining(a), 4)
		want(t, "another quantity", s.mustBuy(a, u, token, "2").told(t), sale.TokenReused)
		other := s.do(request{"POST", buyPath(a, 1), buyBody(token, "1"), as(s.jwt(u))})
		want(t, "another item", other.told(t), sale.TokenReused)
		want(t, "another user", s.mustBuy(a, newID(), token, "1").told(t), sale.BadRequestToken)
		for _, m := range s.queue.all() {
			if m.Token != token || m.Quantity != 1 || m.User != u || m.Price != 9900 || m.LedgerID == "" {
				t.Errorf("message %+v", m)
			}
		}
	})
}

func TestCase36WideIDs(t *testing.T) {
	t.Parallel()
	a := newActivity(10, 1)
	a.ID, a.Items[0].Commodity = 9223372036854775807, 9223372036854775806
	s := newShop(t, selling(a))
	for _, u := range []sale.ID{9007199254740993, 9223372036854775807} {
		want(t, u.String(), s.mustBuy(a, u, s.requestToken(u, a.ID), "1").told(t), sale.Accepted)
	}
	messages := s.queue.all()
	want(t, "user", messages[0].User, sale.ID(9007199254740993))
	want(t, "activity", messages[1].Activity, a.ID)
	for _, path := range []string{"9223372036854775808", "-1", "0", "1e3", "007", ""} {
		r := s.do(request{"GET", "/api/activities/" + path, "", nil})
		if path != "" { // the list
			want(t, "activity "+path, r.told(t), sale.NotFound)
		}
	}
}

func TestCase37ListStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ remaining, want int64 }{{-3, 0}, {0, 0}, {7, 7}, {10, 10}, {12, 10}} {
		a := newActivity(10, 1)
		d := viewOf(a, map[sale.ID]int64{a.Items[0].Commodity: c.remaining})
		got := answerOf{body: d.body}.field(t, "items").([]any)[0].(map[string]any)
		want(t, strconv.FormatInt(c.remaining, 10), got["remaining"].(float64), float64(c.want))
		want(t, "soldOut", got["soldOut"].(bool), c.want == 0)
	}
}

func TestCase38TheWindowIsRedisClock(t *testing.T) {
	t.Parallel()
	const starts = sale.Millis(1794326400000) // 2026-11-11T00:00:00+08:00
	a := newActivity(10, 1)
	a.StartsAt, a.EndsAt = starts, starts+3_600_000
	buyAt := func(t *testing.T, at sale.Millis) answerOf {
		s := newShop(t, selling(a), func(s *setup) { s.start = at })
		u := newID()
		// The clock of miniredis stands still while the edge's goes on: within 50 ms of a boundary Redis decides.
		return s.mustBuy(a, u, s.requestToken(u, a.ID), "1")
	}
	early := buyAt(t, starts-1)
	want(t, "one ms before", early.told(t), sale.NotStarted)
	want(t, "startsAt", early.field(t, "error", "startsAt").(float64), float64(starts))
	want(t, "at the start", buyAt(t, starts).told(t), sale.Accepted)
	want(t, "one ms before the end", buyAt(t, a.EndsAt-1).told(t), sale.Accepted)
	want(t, "at the end", buyAt(t, a.EndsAt).told(t), sale.EndedCode)
	far := buyAt(t, starts-60_000)
	want(t, "a minute before", far.told(t), sale.NotStarted)
	now := sale.Millis(far.field(t, "error", "now").(float64))
	if now < starts-60_000 || now > starts-50_000 {
		t.Errorf("now %d", now)
	}
	want(t, "a minute after the end", buyAt(t, a.EndsAt+60_000).told(t), sale.EndedCode)
}

func TestCase41ScriptFlushInTheMiddle(t *testing.T) {
	t.Parallel()
	a := newActivity(2000, 1)
	s := newShop(t, selling(a)) // not on the shared Redis: a flush there would hit every other test
	got := s.tally(1000, func(i int) (answerOf, error) {
		if i%100 == 50 {
			if err := s.rdb.ScriptFlush(t.Context()).Err(); err != nil {
				return answerOf{}, err
			}
		}
		u := newID()
		return s.buy(a, u, s.requestToken(u, a.ID), "1")
	})
	want(t, "accepted", got[sale.Accepted], 1000)
	want(t, "remaining", s.remaining(a), 1000)
}

func TestCase46OnlyTheTokenSaysWho(t *testing.T) {
	t.Parallel()
	a := newActivity(10, 1)
	s := newShop(t, selling(a))
	u, other := newID(), newID()
	token := s.requestToken(u, a.ID)
	path := buyPath(a, 0)
	want(t, "no token", s.do(request{"POST", path, buyBody(token, "1"), nil}).told(t), sale.Unauthorized)
	want(t, "a bad token", s.do(request{"POST", path, buyBody(token, "1"), as("x.y.z")}).told(t), sale.Unauthorized)
	want(t, "no bearer", s.do(request{"POST", path, buyBody(token, "1"), map[string]string{"Authorization": s.jwt(u)}}).told(t), sale.Unauthorized)
	for _, body := range []string{
		`{"requestToken":"` + string(token) + `","quantity":1,"userId":"` + other.String() + `"}`,
		`{"requestToken":"` + string(token) + `","quantity":1,"quantity":1}`,
		`{"requestToken":"` + string(token) + `","requestToken":"` + string(token) + `","quantity":1}`,
	} {
		want(t, body, s.do(request{"POST", path, body, as(s.jwt(u))}).told(t), sale.BadRequest)
	}
	h := as(s.jwt(u))
	h["X-User-Id"] = other.String()
	want(t, "another's id in a header", s.do(request{"POST", path + "?userId=" + other.String(), buyBody(token, "1"), h}).told(t), sale.Accepted)
	want(t, "the order is the token's user's", s.queue.all()[0].User, u)
}

func TestCase49Quantities(t *testing.T) {
	t.Parallel()
	a := newActivity(10, 5)
	s := newShop(t, selling(a))
	u := newID()
	for _, q := range []string{"-1", "0", "1.5", `"1"`, "null", "true", "1e3", "1.0", "1E0", "01", "+1", "6", "2147483648", "9223372036854775808", "", "[1]", "1 1", "--1", "NaN"} {
		want(t, "quantity "+q, s.mustBuy(a, u, s.requestToken(u, a.ID), q).told(t), sale.BadRequest)
	}
	missing := s.do(request{"POST", buyPath(a, 0), `{"requestToken":"` + string(s.requestToken(u, a.ID)) + `"}`, as(s.jwt(u))})
	want(t, "missing", missing.told(t), sale.BadRequest)
	want(t, "remaining", s.remaining(a), 10)
	want(t, "5", s.mustBuy(a, u, s.requestToken(u, a.ID), " 5 ").told(t), sale.Accepted)
}
