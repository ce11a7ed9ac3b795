package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"floodgate/sale"
)

// shop is an activity in the middle of its sale: every state of a purchase is there once.
type shop struct {
	id                           sale.ID
	sold, second, written, fresh sale.Order // committed (2 units), committed, row without commit, reservation without row
}

func (w *world) shop() shop {
	w.t.Helper()
	s := shop{id: w.create(-time.Second, time.Hour)}
	if status, text := w.call("POST", "/admin/api/activities/"+s.id.String()+"/preheat", ""); status != http.StatusOK {
		w.t.Fatal(text)
	}
	s.sold = w.place(s.id, w.reserve(s.id, 101, 2), sale.StatePending)
	w.settle(s.sold)
	s.second = w.place(s.id, w.reserve(s.id, 102, 1), sale.StatePending)
	w.settle(s.second)
	w.settle(w.place(s.id, w.reserve(s.id, 103, 1), sale.StateFailed))
	s.written = w.place(s.id, w.reserve(s.id, 104, 1), sale.StatePending)
	s.fresh = sale.Order{Token: w.reserve(s.id, 105, 1), User: 105}
	return s
}

func (w *world) audited(id sale.ID) Audit {
	w.t.Helper()
	status, text := w.call("GET", "/admin/api/activities/"+id.String()+"/audit", "")
	var a Audit
	if err := json.Unmarshal([]byte(text), &a); status != http.StatusOK || err != nil || len(a.Activities) != 1 {
		w.t.Fatalf("%d %s", status, text)
	}
	return a
}

func TestAuditOfAWholeShop(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		s := w.shop()
		a := w.audited(s.id)
		want := ItemAudit{Commodity: thing, Total: 10, Remaining: 5, Occupied: 1, Committed: 3, Reserved: 5, BuyersUnits: 5, LiveUnits: 4, Sold: 4, SlotRows: 4}
		one := a.Activities[0]
		if !a.Balanced || !a.Exact || one.State != "still" || len(one.Faults) != 0 || one.Items[0] != want || a.Queue.Error != "" {
			t.Errorf("got %+v, want items %+v", a, want)
		}
		created := w.create(time.Hour, 2*time.Hour)
		if a := w.audited(created); !a.Balanced || a.Exact || a.Activities[0].State != "not open" {
			t.Errorf("a created activity: %+v", a)
		}
		status, text := w.call("GET", "/admin/api/audit", "")
		if status != http.StatusOK || !strings.Contains(text, s.id.String()) || !strings.Contains(text, created.String()) || !strings.Contains(text, `"balanced":true`) {
			t.Errorf("%d %s", status, text)
		}
	})
}

// While a recovery is under way Redis is not compared, and the audit says so.
func TestAuditWhileTheStockIsProven(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		s := w.shop()
		_, err := w.store.RaiseEpoch(w.ctx, s.id)
		must(t, err)
		if a := w.audited(s.id); !a.Balanced || a.Exact || a.Activities[0].State != "not proven" {
			t.Errorf("%+v", a.Activities[0])
		}
		must(t, w.deps.Ledger.Unprove(w.ctx, cellOf(s.id)))
		if a := w.audited(s.id); !a.Balanced || a.Exact || a.Activities[0].State != "not proven" {
			t.Errorf("%+v", a.Activities[0])
		}
		w.exec("UPDATE items SET sold = sold + 1 WHERE activity_id = ?", int64(s.id))
		if a := w.audited(s.id); a.Balanced {
			t.Error("the database's own books are not looked at")
		}
	})
}

// damage is one hand at one side, and what the audit must say: the check, and the token or user that breaks it.
type damage struct {
	name  string
	do    func(w *world, s shop)
	check string
	token func(s shop) sale.Token
	user  sale.ID
}

func soldToken(s shop) sale.Token    { return s.sold.Token }
func secondToken(s shop) sale.Token  { return s.second.Token }
func writtenToken(s shop) sale.Token { return s.written.Token }
func freshToken(s shop) sale.Token   { return s.fresh.Token }

func TestAuditFindsDamageInRedis(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		stock := func(n int64) func(*world, shop) {
			return func(w *world, s shop) { must(t, w.rdb.HIncrBy(w.ctx, key(s.id, "stock"), thing.String(), n).Err()) }
		}
		rewrite := func(token func(shop) sale.Token, was, is string) func(*world, shop) {
			return func(w *world, s shop) {
				k, f := key(s.id, "res"), string(token(s))
				record, err := w.rdb.HGet(w.ctx, k, f).Result()
				must(t, err)
				if !strings.Contains(record, was) {
					t.Fatalf("%q is not in %q", was, record)
				}
				must(t, w.rdb.HSet(w.ctx, k, f, strings.Replace(record, was, is, 1)).Err())
			}
		}
		set := func(user string, value func(s shop) string) func(*world, shop) {
			return func(w *world, s shop) {
				must(t, w.rdb.HSet(w.ctx, key(s.id, "buyers"), user+":"+thing.String(), value(s)).Err())
			}
		}
		for _, d := range []damage{
			{"remaining +1", stock(1), "sum", nil, 0},
			{"remaining -1", stock(-1), "sum", nil, 0},
			{"remaining negative", stock(-6), "remaining", nil, 0},
			{"committed record removed", func(w *world, s shop) { must(t, w.rdb.HDel(w.ctx, key(s.id, "res"), string(s.sold.Token)).Err()) }, "row-without-record", soldToken, 101},
			{"occupied record removed", func(w *world, s shop) { must(t, w.rdb.HDel(w.ctx, key(s.id, "res"), string(s.fresh.Token)).Err()) }, "slot-without-record", freshToken, 105},
			{"occupied turned committed without a row", rewrite(freshToken, "O|", "C|"), "committed-without-row", freshToken, 105},
			{"committed turned released", rewrite(soldToken, "C|", "R|"), "released-with-row", soldToken, 101},
			{"record of another user", rewrite(secondToken, "|102|", "|999|"), "another-user", secondToken, 999},
			{"record of another quantity", rewrite(soldToken, "|2|9900|", "|1|9900|"), "record-and-row", soldToken, 101},
			{"buyer's slot removed", func(w *world, s shop) { must(t, w.rdb.HDel(w.ctx, key(s.id, "buyers"), "104:"+thing.String()).Err()) }, "slot-missing", writtenToken, 104},
			{"buyer's slot extra", set("777", func(s shop) string { return string(s.fresh.Token) }), "slot-without-record", freshToken, 777},
			{"buyer over the limit", set("101", func(s shop) string {
				return strings.Join([]string{string(s.sold.Token), string(s.sold.Token), string(s.second.Token)}, ",")
			}), "limit-redis", nil, 101},
			{"stock of the item lost", func(w *world, s shop) {
				must(t, w.rdb.HSet(w.ctx, key(s.id, "stock"), "5", 0).Err())
				must(t, w.rdb.HDel(w.ctx, key(s.id, "stock"), thing.String()).Err())
			}, "stock", nil, 0},
			{"everything lost", func(w *world, s shop) { must(t, w.deps.Ledger.Drop(w.ctx, cellOf(s.id))) }, "redis-lost", nil, 0},
		} {
			t.Run(d.name, func(t *testing.T) { w.mustFind(t, d) })
		}
	})
}

func TestAuditFindsDamageInTheDatabase(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		exec := func(statement string, args func(s shop) []any) func(*world, shop) {
			return func(w *world, s shop) { w.exec(statement, args(s)...) }
		}
		activity := func(s shop) []any { return []any{int64(s.id)} }
		order := func(s shop) []any { return []any{int64(s.sold.No)} }
		again := func(w *world, s shop) { // a second row for the user of sold, in a slot beyond the limit
			token := w.key.Sign(sale.TokenClaims{User: 101, Activity: s.id, Nonce: 7, Expires: 4_000_000_000_000})
			w.exec(`INSERT INTO orders (order_no, request_token, user_id, activity_id, commodity_id, title, quantity, price_cents, state, source, reason, slots, created_at, pay_by, updated_at, announced)
				SELECT order_no + 1, ?, user_id, activity_id, commodity_id, title, quantity, price_cents, state, source, reason, '2,3', created_at, pay_by, updated_at, announced FROM orders WHERE order_no = ?`,
				string(token), int64(s.sold.No))
			w.exec("INSERT INTO slots (user_id, activity_id, commodity_id, slot, order_no) VALUES (101, ?, ?, 2, ?), (101, ?, ?, 3, ?)",
				int64(s.id), int64(thing), int64(s.sold.No)+1, int64(s.id), int64(thing), int64(s.sold.No)+1)
			w.exec("UPDATE items SET sold = sold + 2 WHERE activity_id = ?", int64(s.id))
		}
		for _, d := range []damage{
			{"row deleted", exec("DELETE FROM orders WHERE order_no = ?", order), "committed-without-row", soldToken, 101},
			{"row turned failed", exec("UPDATE orders SET state = 4 WHERE order_no = ?", order), "committed-without-row", soldToken, 101},
			{"row of another user", exec("UPDATE orders SET user_id = 888 WHERE order_no = ?", order), "committed-without-row", soldToken, 101},
			{"row of another quantity", exec("UPDATE orders SET quantity = 1 WHERE order_no = ?", order), "record-and-row", soldToken, 101},
			{"row of another number", exec("UPDATE orders SET order_no = order_no + 1 WHERE order_no = ?", order), "record-and-row", soldToken, 101},
			{"row duplicated over the limit", again, "limit-rows", nil, 101},
			{"row that Redis does not know", again, "row-without-record", nil, 101},
			{"sold counter", exec("UPDATE items SET sold = sold + 1 WHERE activity_id = ?", activity), "sold", nil, 0},
			{"slot row missing", exec("DELETE FROM slots WHERE order_no = ? AND slot = 1", order), "slot-rows", soldToken, 101},
			{"slot row extra", func(w *world, s shop) {
				w.exec("INSERT INTO slots (user_id, activity_id, commodity_id, slot, order_no) VALUES (666, ?, ?, 0, 5)", int64(s.id), int64(thing))
			}, "slot-rows", nil, 666},
			{"total raised", exec("UPDATE items SET total = total + 1 WHERE activity_id = ?", activity), "sum", nil, 0},
			{"total below what is sold", exec("UPDATE items SET total = 3 WHERE activity_id = ?", activity), "oversold", nil, 0},
		} {
			t.Run(d.name, func(t *testing.T) { w.mustFind(t, d) })
		}
	})
}

func (w *world) mustFind(t *testing.T, d damage) {
	t.Helper()
	own := *w
	w, own.t = &own, t
	s := w.shop()
	if a := w.audited(s.id); !a.Balanced {
		t.Fatalf("damaged before: %+v", a.Activities[0].Faults)
	}
	d.do(w, s)
	a := w.audited(s.id)
	found := slices.ContainsFunc(a.Activities[0].Faults, func(f Finding) bool {
		return f.Check == d.check && (d.token == nil || f.Token == d.token(s)) && (d.user == 0 || f.User == d.user)
	})
	if a.Balanced || a.Activities[0].Balanced || !found {
		t.Errorf("balanced %v, want %s of user %s among %+v", a.Balanced, d.check, d.user, a.Activities[0].Faults)
	}
}

// A sale that never holds still is judged by its bounds, and the audit says so; damage that no instant allows is found all the same.
func TestAuditOfAMovingSale(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		s := w.shop()
		quit, done := make(chan struct{}), make(chan error, 1)
		go func() {
			for {
				select {
				case <-quit:
					done <- nil
					return
				default:
				}
				if err := errors.Join(w.deps.Ledger.Pause(w.ctx, cellOf(s.id)), w.deps.Ledger.Resume(w.ctx, cellOf(s.id))); err != nil {
					done <- err
					return
				}
			}
		}()
		a := w.audited(s.id)
		w.exec("DELETE FROM slots WHERE order_no = ? AND slot = 1", int64(s.sold.No))
		damaged := w.audited(s.id)
		close(quit)
		must(t, <-done)
		if one := a.Activities[0]; !a.Balanced || a.Exact || one.State != "moving" {
			t.Errorf("%+v", one)
		}
		if one := damaged.Activities[0]; damaged.Balanced || len(one.Faults) != 2 || one.Faults[1].Token != s.sold.Token {
			t.Errorf("%+v", one)
		}
	})
}
