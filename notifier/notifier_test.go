package notifier

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gorilla/websocket"

	"floodgate/sale"
)

func TestAWatchedTokenFromAcceptedToPaid(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		s := open(t, addr, nil)
		u := someID()
		token := s.token(u)
		c := s.login(u)
		first := outcome(u, token, sale.Accepted)
		s.record(first)
		c.watch(token)
		c.hearsOutcome(first)

		pending := outcome(u, token, sale.PendingPayment)
		s.record(pending)
		s.publish(pending)
		c.hearsOutcome(pending)
		s.publish(first, pending, pending) // old and repeated news
		paid := outcome(u, token, sale.Paid)
		s.record(paid)
		s.publish(paid)
		c.hearsOutcome(paid)

		c.watch(token) // asked again: answered again
		c.hearsOutcome(paid)
		c.silent(s, u)
	})
}

func TestAnUnknownTokenIsPolledAndStillPushed(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		s := open(t, addr, nil)
		u := someID()
		token := s.token(u)
		c := s.login(u)
		c.watch(token)
		c.hears(`{"type":"error","code":"not_found","requestToken":"` + string(token) + `"}`)
		failed := outcome(u, token, sale.Failed)
		failed.Reason = sale.ReasonSoldOut
		s.publish(failed)
		c.hearsOutcome(failed)
	})
}

func TestEveryConnectionOfAUserWatchedOrNot(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		s := open(t, addr, nil)
		u, other := someID(), someID()
		one, two, stranger := s.login(u), s.login(u), s.login(other)
		token := s.token(u)
		accepted := outcome(u, token, sale.Accepted)
		s.record(accepted)
		one.watch(token)
		one.hearsOutcome(accepted)
		two.hearsOutcome(accepted) // a reading is told to all of the user's, too
		pending := outcome(u, token, sale.PendingPayment)
		s.publish(pending)
		one.hearsOutcome(pending)
		two.hearsOutcome(pending)
		stranger.silent(s, other)
	})
}

func TestStock(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		s := open(t, addr, nil)
		u := someID()
		s.setStock(11, 5, 1)
		c := s.login(u)
		c.subscribe(s.activity)
		id := s.activity.String()
		c.hears(`{"type":"stock","activityId":"`+id+`","items":[{"commodityId":"11","remaining":5,"soldOut":false,"version":1}]}`, "at")
		s.setStock(11, 0, 2)
		c.hears(`{"type":"stock","activityId":"`+id+`","items":[{"commodityId":"11","remaining":0,"soldOut":true,"version":2}]}`, "at")
		late := s.login(someID())
		late.subscribe(s.activity)
		late.hears(`{"type":"stock","activityId":"`+id+`","items":[{"commodityId":"11","remaining":0,"soldOut":true,"version":2}]}`, "at")
		c.silent(s, u) // nothing changed, nothing said

		unknown := someID()
		c.subscribe(unknown)
		c.hears(`{"type":"error","code":"not_found","activityId":"` + unknown.String() + `"}`)
	})
}

func TestStockAtMostFiveTimesASecond(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		s := open(t, addr, nil)
		s.setStock(11, 1_000_000, 1)
		c := s.login(someID())
		c.subscribe(s.activity)
		begin, heard := time.Now(), 0
		for left := int64(999_999); time.Since(begin) < time.Second; left-- {
			s.setStock(11, left, 1)
		}
		_ = c.ws.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		for {
			if _, _, err := c.ws.ReadMessage(); err != nil {
				break
			}
			heard++
		}
		if took := time.Since(begin).Seconds(); heard < 2 || float64(heard) > took*5+2 {
			t.Errorf("%d stock messages in %.1f s", heard, took)
		}
	})
}

func TestNobodyIsLetInWithoutAValidToken(t *testing.T) {
	t.Parallel()
	s := open(t, miniredis.RunT(t).Addr(), func(_ *Config, c *times) { c.auth = 50 * time.Millisecond })
	s.dial(nil).closed(4001) // says nothing
	expired, err := s.signer.Sign(1, -time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.n.times.auth = patience // only for the connections after this one: a new shop would do the same
	refused := func(code int, text string) {
		t.Helper()
		c := s.dial(nil)
		c.say(text)
		c.closed(code)
	}
	refused(4001, `{"type":"auth","token":"`+expired+`"}`)
	refused(4001, `{"type":"auth","token":"x"}`)
	refused(4001, `{"type":"subscribe","activityId":"1"}`)
	refused(4400, `{"type":"auth"}`)
	refused(4400, `{"type":"auth","token":"`+strings.Repeat("x", maxFirstMessage)+`"}`)
	refused(4400, `hello`)
}

func TestBadMessages(t *testing.T) {
	t.Parallel()
	s := open(t, miniredis.RunT(t).Addr(), nil)
	for _, text := range []string{
		``, `{}`, `[]`, `null`, `"watch"`, `{"type":"watch"}`, `{"type":"buy"}`, `{"type":"watch","requestToken":1}`,
		`{"type":"watch","requestToken":"x","extra":1}`, `{"type":"watch","requestToken":"x","activityId":"1"}`,
		`{"type":"subscribe","activityId":1}`, `{"type":"subscribe","activityId":"007"}`, `{"type":"subscribe","activityId":"-1"}`,
		`{"type":"subscribe","activityId":"1"}{}`, `{"type":"watch","requestToken":"` + strings.Repeat("x", maxMessage) + `"}`,
	} {
		c := s.login(someID())
		c.say(text)
		c.closed(4400)
	}
	binary := s.login(someID())
	if err := binary.ws.WriteMessage(websocket.BinaryMessage, []byte(`{"type":"subscribe","activityId":"1"}`)); err != nil {
		t.Fatal(err)
	}
	binary.closed(4400)
}

func TestTokensOfOthers(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		s := open(t, addr, nil)
		u1, u2 := someID(), someID()
		token := s.token(u1)
		accepted := outcome(u1, token, sale.Accepted)
		s.record(accepted)
		thief := s.login(u2)
		thief.watch(token)
		thief.closed(4003)

		forged := []byte(s.token(u2))
		forged[20] ^= 1
		c := s.login(u2)
		c.watch(sale.Token(forged))
		c.hears(`{"type":"error","code":"bad_request_token"}`)
		c.say(`{"type":"auth","token":"` + s.jwt(u1) + `"}`) // a connection keeps its user
		c.closed(4003)
	})
}

func TestCase51Origins(t *testing.T) {
	t.Parallel()
	s := open(t, miniredis.RunT(t).Addr(), nil)
	u := someID()
	cookie := "fg_session=" + s.jwt(u)
	for _, from := range []string{"https://evil.test", "https://shop.test.evil.test", "https://notshop.test", "null", "http://shop.test",
		"https://shop.test/", "https://shop.test:443", "https://SHOP.test", "https://shop.test https://evil.test", "*", ""} {
		c := s.dial(header{"Origin": from, "Cookie": cookie})
		c.closed(4003)
	}
	c := s.dial(header{"Origin": origin, "Cookie": cookie})
	c.hears(`{"type":"ready","userId":"`+u.String()+`"}`, "now") // the cookie is enough
	token := s.token(u)
	pending := outcome(u, token, sale.PendingPayment)
	s.publish(pending)
	c.hearsOutcome(pending)

	stale := s.dial(header{"Origin": origin, "Cookie": "fg_session=x"}) // an old cookie: the page sends auth
	stale.say(`{"type":"auth","token":"` + s.jwt(u) + `"}`)
	stale.hears(`{"type":"ready","userId":"`+u.String()+`"}`, "now")
	noOrigin := s.dial(header{"Cookie": cookie}) // no browser: its cookie does not count
	noOrigin.watch(token)
	noOrigin.closed(4001)
}

func TestSubprotocol(t *testing.T) {
	t.Parallel()
	s := open(t, miniredis.RunT(t).Addr(), nil)
	url := "ws://" + s.n.deps.Listener.Addr().String() + "/ws"
	if got := s.login(1).ws.Subprotocol(); got != "floodgate.v1" {
		t.Errorf("subprotocol %q", got)
	}
	d := websocket.Dialer{Subprotocols: []string{"floodgate.v2"}}
	if _, resp, err := d.DialContext(t.Context(), url, nil); err == nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("floodgate.v2: %v", err)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	s := open(t, miniredis.RunT(t).Addr(), func(c *Config, _ *times) { c.RestartSpread = 3 * time.Second })
	u := someID()
	c, quiet := s.login(u), s.dial(nil)
	pending := outcome(u, s.token(u), sale.PendingPayment)
	s.publish(pending)
	c.hearsOutcome(pending)
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.stop() }()
	for _, one := range []*client{c, quiet} {
		delay, err := strconv.Atoi(one.closed(1012))
		if err != nil || delay < 0 || delay > 3000 {
			t.Errorf("delay %d ms, %v", delay, err)
		}
	}
	<-stopped
	if s.n.Ready() == nil {
		t.Error("ready after its end")
	}
}

func TestPings(t *testing.T) {
	t.Parallel()
	s := open(t, miniredis.RunT(t).Addr(), func(_ *Config, c *times) { c.ping, c.pong = 20*time.Millisecond, 500*time.Millisecond })
	alive, dead := s.login(1), s.login(2)
	dead.ws.SetPingHandler(func(string) error { return nil }) // reads, but answers nothing
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, _, err := dead.ws.ReadMessage(); err == nil {
			t.Error("a message for nobody")
		}
	}()
	pings, enough := 0, errors.New("enough")
	alive.ws.SetPingHandler(func(data string) error {
		if pings++; pings == 60 { // more than two pong deadlines
			return enough
		}
		return alive.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(patience))
	})
	if _, _, err := alive.ws.ReadMessage(); err != enough {
		t.Errorf("after %d pings: %v", pings, err)
	}
	<-ended
}
