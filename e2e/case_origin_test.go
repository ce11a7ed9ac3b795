package e2e

import (
	"fmt"
	"net/http"
	"time"

	"floodgate/sale"
)

// A page of another origin can use neither the session's cookie nor a socket, and a socket tells nobody another's outcome.
func case51(r *rig) {
	activity := r.activity(map[sale.ID]int64{1: 10})
	p := r.person()
	token := p.token(activity)
	cookie := "fg_session=" + p.jwt
	evil := [][]string{nil, {"https://evil.test"}, {"https://shop.test.evil.test"}, {"https://notshop.test"}, {"null"}, {"http://shop.test"}, {""},
		{"https://shop.test:443"}, {"https://shop.test/"}, {"https://SHOP.test"}, {"https://shop.test."}, {"https://shop.test@evil.test"}, {"https://shop.test https://evil.test"},
		{"https://evil.test", shopOrigin}, {shopOrigin, "https://evil.test"}}
	for i, origins := range evil {
		h := http.Header{"Cookie": {cookie}, "Origin": origins}
		for _, call := range [][2]string{{tokenPath(activity), "{}"}, {buyPath(activity, 1), buyBody(token, 1)}} {
			a := r.send(at(i), "POST", call[0], call[1], h)
			equal(r, fmt.Sprintf("origin %q, POST %s", origins, call[0]), fmt.Sprint(a.status, " ", a.code()), "403 forbidden")
			equal(r, "readable by other origins", a.header.Get("Access-Control-Allow-Origin"), "")
		}
		preflight := r.send(at(i), "OPTIONS", buyPath(activity, 1), "", http.Header{"Origin": origins, "Access-Control-Request-Method": {"POST"}})
		equal(r, "a preflight lets it in", preflight.header.Get("Access-Control-Allow-Origin"), "")
		if origins != nil {
			r.turnedAway(h, p)
		}
	}
	equal(r, "rows so far", r.rows(activity, ""), 0)
	h := http.Header{"Cookie": {cookie}, "Origin": {shopOrigin}}
	equal(r, "the shop's own page", r.send("edge-1", "POST", buyPath(activity, 1), buyBody(token, 1), h).code(), "accepted")
	r.ownSocket(h, p, token)
	r.eavesdropper(activity)
	r.books(activity)
}

// turnedAway demands that a socket of such a page is closed before it is told anything, with its cookie and with a login.
func (r *rig) turnedAway(h http.Header, p *person) {
	for _, login := range []bool{false, true} {
		s := r.dial(h, nil)
		if login {
			_ = s.ws.WriteJSON(map[string]string{"type": "auth", "token": p.jwt}) // it may be closed already
		}
		code := s.closes(func(m said) { r.t.Errorf("a socket of origin %q is told %+v", h["Origin"], m) })
		equal(r, fmt.Sprintf("close code for origin %q", h["Origin"]), code, 4003)
		s.ws.Close()
	}
}

// ownSocket demands that the shop's own page hears the outcome by its cookie.
func (r *rig) ownSocket(h http.Header, p *person, token sale.Token) {
	s := r.dial(h, nil)
	defer s.ws.Close()
	s.say("watch", "requestToken", string(token))
	_ = s.ws.SetReadDeadline(time.Now().Add(20 * time.Second))
	var m said
	for m.Outcome != "pending_payment" {
		if err := s.ws.ReadJSON(&m); err != nil {
			r.t.Errorf("the shop's own page hears no outcome: %v", err)
			return
		}
		if m.Type == "ready" {
			equal(r, "who the cookie is", m.UserID, p.id.String())
		}
	}
}

// eavesdropper demands that u2, who watches u1's token before and after u1 buys, is sent away and hears nothing.
func (r *rig) eavesdropper(activity sale.ID) {
	p := r.person()
	token := p.token(activity)
	spy := func() int {
		s := r.socket(r.person().jwt, nil)
		defer s.ws.Close()
		s.say("watch", "requestToken", string(token))
		return s.closes(func(m said) {
			if m.RequestToken == token || m.Type == "outcome" {
				r.t.Errorf("u2 is told %+v", m)
			}
		})
	}
	equal(r, "watching another's token", spy(), 4003)
	quiet := r.socket(r.person().jwt, nil) // watches nothing: the outcomes of others must not come by themselves
	defer quiet.ws.Close()
	equal(r, "u1 buys", p.send("edge-2", "POST", buyPath(activity, 1), buyBody(token, 1)).code(), "accepted")
	p.final("edge-2", token, 30*time.Second)
	equal(r, "watching another's placed token", spy(), 4003)
	_ = quiet.ws.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	quiet.hear(func(m said) { r.t.Errorf("a socket without a watch is told %+v", m) })
	for what, path := range map[string]string{"by poll": "/api/requests/" + string(token)} {
		equal(r, what, r.person().get("edge-1", path).status, http.StatusNotFound)
	}
}
