package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"floodgate/sale"
)

// rounded is a bare number that JSON.parse may round: 2^53 has 16 digits.
var rounded = regexp.MustCompile(`[:\[,]\s*-?\d{16,}`)

// Ids above 2^53 survive a browser, and what is no id is nobody.
func case36(r *rig) {
	items := []sale.ID{9007199254740993, 9223372036854775807}
	activity := r.activity(map[sale.ID]int64{items[0]: 10, items[1]: 10})
	for i, id := range []sale.ID{9007199254740993, 9223372036854775807} {
		p, item := r.named(id), items[i]
		a, token := p.buy(at(i), activity, item, 1)
		equal(r, "user "+id.String(), a.code(), "accepted")
		polled := p.final(at(i), token, 30*time.Second)
		no, _ := polled.field("orderNo").(string)
		if n, err := strconv.ParseInt(no, 10, 64); err != nil || n <= 1<<53 {
			r.t.Errorf("order number %q", no)
		}
		order := p.get(at(i+1), "/api/orders/"+no)
		for field, want := range map[string]string{"orderNo": no, "activityId": activity.String(), "commodityId": item.String(), "requestToken": string(token)} {
			equal(r, field, order.field(field), any(want))
		}
		list, shown := p.get(at(i), "/api/orders"), p.get(at(i), "/api/activities/"+activity.String())
		again, _ := p.buy(at(i), activity, item, 1)
		equal(r, "duplicate names the order", again.field("error", "orderNo"), any(no))
		for _, body := range []reply{a, polled, order, list, shown, again} {
			if n := rounded.Find(body.body); n != nil {
				r.t.Errorf("a bare number %s in %s", n, body.body)
			}
			equal(r, "round trip", roundTrip(r, body.body), string(compact(body.body)))
		}
		if !contains(list, `"`+no+`"`) || !contains(shown, `"`+item.String()+`"`) {
			r.t.Errorf("list %s, activity %s", list.body, shown.body)
		}
	}
	for _, sub := range []any{"9223372036854775808", "18446744073709551617", "-1", "0", "1e3", "007", "", " 1", "1 ", "+1", "1.0", "0x10", "１", nil, 5, 1.5, []string{"1"}} {
		r.nobody(activity, items[0], sub)
	}
	equal(r, "remaining", r.books(activity)[items[1]].Remaining, 9)
	equal(r, "rows", r.rows(activity, ""), 2)
}

// nobody demands that a token with this subject opens nothing.
func (r *rig) nobody(activity, item sale.ID, sub any) {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": sub, "exp": time.Now().Add(time.Hour).Unix()}).SignedString([]byte(authKey))
	if err != nil {
		r.t.Fatal(err)
	}
	p := &person{r, 0, token}
	for _, call := range [][3]string{
		{"POST", tokenPath(activity), "{}"}, {"POST", buyPath(activity, item), buyBody(r.sign(1, activity), 1)},
		{"GET", "/api/orders", ""}, {"GET", "/api/requests/" + string(r.sign(1, activity)), ""},
	} {
		a := p.send("edge-1", call[0], call[1], call[2])
		equal(r, fmt.Sprintf("subject %v, %s %s", sub, call[0], call[1]), fmt.Sprint(a.status, " ", a.code()), "401 unauthorized")
	}
}

// sign makes a request token as an edge does.
func (r *rig) sign(user, activity sale.ID) sale.Token {
	return sale.NewTokenKey([]byte(internalKey)).Sign(sale.TokenClaims{User: user, Activity: activity, Nonce: nonce.Add(1),
		Expires: sale.At(time.Now().Add(5*time.Minute)) / 1000 * 1000})
}

// roundTrip is a body after JSON.parse, where every number is a double, and JSON.stringify.
func roundTrip(r *rig, body []byte) string {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		r.t.Errorf("%v: %s", err, body)
	}
	b, _ := json.Marshal(v) // it was JSON
	return string(b)
}

// compact has a body's fields in the order of roundTrip, its numbers as they were written.
func compact(body []byte) []byte {
	var v any
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	_ = d.Decode(&v) // roundTrip tells
	b, _ := json.Marshal(v)
	return b
}

// Who buys is said by the login alone: not by the body, a header or the query.
func case46(r *rig) {
	activity := r.activity(map[sale.ID]int64{1: 10})
	p, other := r.person(), r.person()
	token := p.token(activity)
	path, body := buyPath(activity, 1), buyBody(token, 1)
	for what, h := range map[string]http.Header{
		"no login": nil, "garbage": bearer("x.y.z"), "no bearer": {"Authorization": {p.jwt}}, "basic": {"Authorization": {"Basic " + p.jwt}},
		"empty": {"Authorization": {"Bearer "}}, "a header of another name": {"X-Authorization": {"Bearer " + p.jwt}, "X-User-Id": {p.id.String()}},
		"two logins": {"Authorization": {"Bearer " + other.jwt, "Bearer " + p.jwt}}, "two logins, the other way": {"Authorization": {"Bearer " + p.jwt, "Bearer " + other.jwt}},
	} {
		for _, call := range [][3]string{{"POST", path, body}, {"POST", path + "?token=" + p.jwt, body}, {"POST", tokenPath(activity), "{}"}, {"GET", "/api/orders", ""}, {"GET", "/api/requests/" + string(token), ""}} {
			a := r.send("edge-1", call[0], call[1], call[2], h)
			equal(r, what+", "+call[0]+" "+call[1], fmt.Sprint(a.status, " ", a.code()), "401 unauthorized")
		}
	}
	for _, twice := range []string{
		`{"requestToken":"TOKEN","quantity":1,"userId":"OTHER"}`, `{"requestToken":"TOKEN","quantity":1,"user_id":"OTHER"}`, `{"requestToken":"TOKEN","quantity":1,"sub":"OTHER"}`,
		`{"userId":"OTHER","requestToken":"TOKEN","quantity":1}`, `{"requestToken":"TOKEN","quantity":1,"quantity":1}`, `{"requestToken":"TOKEN","requestToken":"TOKEN","quantity":1}`,
		`{"requestToken":"TOKEN","quantity":1,"Quantity":1}`, `{"requestToken":"TOKEN","quantity":1}{"requestToken":"TOKEN","quantity":1}`,
	} {
		text := strings.NewReplacer("TOKEN", string(token), "OTHER", other.id.String()).Replace(twice)
		equal(r, text, p.send("edge-2", "POST", path, text).code(), "bad_request")
	}
	equal(r, "a login in the body", p.send("edge-2", "POST", tokenPath(activity), `{"userId":"`+other.id.String()+`"}`).code(), "bad_request")
	equal(r, "rows so far", r.rows(activity, ""), 0)
	h := bearer(p.jwt)
	for _, name := range []string{"X-User-Id", "X-User", "User-Id", "Userid", "X-Forwarded-User", "X-Remote-User"} {
		h.Set(name, other.id.String())
	}
	query := "?userId=" + other.id.String() + "&user=" + other.id.String() + "&user_id=" + other.id.String()
	equal(r, "ignored", r.send("edge-1", "POST", path+query, body, h).code(), "accepted")
	no, _ := p.final("edge-2", token, 30*time.Second).field("orderNo").(string)
	equal(r, "rows of the login", r.rows(activity, "AND user_id = ?", int64(p.id)), 1)
	equal(r, "rows of the other", r.rows(activity, "AND user_id = ?", int64(other.id)), 0)
	for what, a := range map[string]reply{
		"the list":  r.send("edge-1", "GET", "/api/orders?user="+p.id.String()+"&userId="+p.id.String(), "", bearer(other.jwt)),
		"the order": r.send("edge-1", "GET", "/api/orders/"+no+"?user="+p.id.String(), "", bearer(other.jwt)),
	} {
		if contains(a, no) {
			r.t.Errorf("%s of another, by a query: %s", what, a.body)
		}
	}
	equal(r, "remaining", r.books(activity)[1].Remaining, 9)
}

// A quantity is a whole number from 1 to the limit, once, written plainly.
func case49(r *rig) {
	activity := r.offer(offer{totals: map[sale.ID]int64{1: 10}, limit: 5})
	p := r.person()
	token := p.token(activity)
	path := buyPath(activity, 1)
	for i, q := range []string{"-1", "-5", "-10", "0", "-0", "1.5", "1.0", `"1"`, `"-1"`, "null", "true", "false", "1e3", "1e0", "1E0", "0.1e1", "01", "+1", "0x1", "6", "11",
		"2147483648", "4294967297", "9223372036854775808", "18446744073709551617", "1" + strings.Repeat("0", 400), "", "[1]", `{"a":1}`, "1 1", "--1", "NaN", "Infinity", "１"} {
		a := p.send(at(i), "POST", path, buyBody(token, q))
		equal(r, "quantity "+q, fmt.Sprint(a.status, " ", a.code()), "400 bad_request")
	}
	for i, body := range []string{"", "{}", "null", "[]", `""`, "1", `{"requestToken":"` + string(token) + `"}`, `{"quantity":1}`,
		`{"requestToken":"` + string(token) + `","quantity":1,"quantity":5}`, `{"requestToken":"` + string(token) + `","quantity":5,"quantity":-1}`,
		`{"requestToken":null,"quantity":1}`, `{"requestToken":"` + string(token) + `","quantity":1,}`, `{"requestToken":"` + string(token) + `","quantity":1`,
		`{"requestToken":"` + string(token) + `","quantity":1,"price":"0.01"}`, `[{"requestToken":"` + string(token) + `","quantity":1}]`,
		`{"requestToken":"` + string(token) + `","\u0071uantity":1}`} {
		a := p.send(at(i), "POST", path, body)
		equal(r, "body "+body, fmt.Sprint(a.status, " ", a.code()), "400 bad_request")
	}
	equal(r, "a body of 17 kB", p.send("edge-1", "POST", path, buyBody(token, strings.Repeat(" ", 17<<10)+"1")).status, http.StatusRequestEntityTooLarge)
	equal(r, "Redis holds", r.redisStock(activity, 1), "10")
	equal(r, "rows", r.rows(activity, ""), 0)
	equal(r, "five", p.send("edge-1", "POST", path, buyBody(token, " 5 ")).code(), "accepted")
	equal(r, "remaining", r.books(activity)[1].Remaining, 5)
}

// What belongs to another is as unknown as what does not exist.
func case50(r *rig) {
	activity := r.activity(map[sale.ID]int64{1: 10})
	p, thief := r.person(), r.person()
	a, token := p.buy("edge-1", activity, 1, 1)
	equal(r, "u1", a.code(), "accepted")
	no, _ := p.final("edge-1", token, 30*time.Second).field("orderNo").(string)
	mine := p.get("edge-1", "/api/orders/"+no)
	equal(r, "its own", mine.status, http.StatusOK)
	unknown := r.sign(p.id, activity)
	n, _ := strconv.ParseInt(no, 10, 64)
	for _, call := range [][3]string{
		{"GET", "/api/requests/" + string(token), "/api/requests/" + string(unknown)},
		{"GET", "/api/orders/" + no, "/api/orders/" + sale.ID(n^(1<<20)).String()},
		{"POST", "/api/orders/" + no + "/cancel", "/api/orders/123/cancel"},
		{"POST", "/api/orders/" + no + "/pay", "/api/orders/123/pay"},
		{"DELETE", "/api/orders/" + no, "/api/orders/123"},
		{"PUT", "/api/requests/" + string(token), "/api/requests/" + string(unknown)},
	} {
		for i := range 2 {
			got, want := thief.send(at(i), call[0], call[1], "{}"), thief.send(at(i), call[0], call[2], "{}")
			equal(r, call[0]+" "+call[1], got.status, http.StatusNotFound)
			equal(r, call[0]+" "+call[1], withoutID(got), withoutID(want))
			equal(r, "its length", len(got.body), len(want.body))
		}
	}
	for _, query := range []string{"", "?cursor=" + sale.ID(n+1).String(), "?cursor=9223372036854775807", "?limit=100", "?user=" + p.id.String()} {
		equal(r, "the list"+query, strings.TrimSpace(string(thief.get("edge-2", "/api/orders"+query).body)), `{"orders":[]}`)
	}
	nobody := r.send("edge-1", "GET", "/api/orders/"+no, "", nil)
	equal(r, "without a login", nobody.code(), "unauthorized")
	equal(r, "nothing has changed", string(p.get("edge-2", "/api/orders/"+no).body), string(mine.body))
	equal(r, "remaining", r.books(activity)[1].Remaining, 9)
}

// withoutID is a body with the request's id taken out.
func withoutID(a reply) string {
	id, _ := a.field("requestId").(string)
	return strings.ReplaceAll(string(a.body), id, "")
}
