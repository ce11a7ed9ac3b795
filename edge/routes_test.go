package edge

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"floodgate/lua"
	"floodgate/sale"
)

func TestExpiryBindsTheFirstUseOnly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on func(*setup)) {
		a := newActivity(10, 2)
		u := newID()
		old := sale.Millis(1_000_000_000_000)
		sign := func() sale.Token {
			return sale.NewTokenKey(secret).Sign(sale.TokenClaims{User: u, Activity: a.ID, Nonce: uint64(newID()), Expires: old})
		}
		never, used, settled := sign(), sign(), sign()
		w := newOrderAPI(t, order{token: settled, user: u, no: newID(), item: a.Items[0].Commodity, state: sale.Closed})
		s := newShop(t, on, selling(a), askingWorkers(w.URL))
		// The first use was in time, over the ledger itself.
		_, err := s.ledger.Reserve(t.Context(), lua.Cell{Activity: a.ID}, a.Items[0].Commodity, 9900, []lua.ReserveRequest{{Token: used, User: u, Quantity: 1}})
		must(t, err)
		want(t, "used before", s.mustBuy(a, u, used, "1").told(t), sale.Accepted)
		want(t, "used before, with another quantity", s.mustBuy(a, u, used, "2").told(t), sale.TokenReused)
		want(t, "only the worker knows", s.mustBuy(a, u, settled, "1").told(t), sale.Accepted)
		want(t, "only the worker knows, with another quantity", s.mustBuy(a, u, settled, "2").told(t), sale.TokenReused)
		want(t, "nobody knows", s.mustBuy(a, u, never, "1").told(t), sale.BadRequestToken)
		want(t, "remaining", s.remaining(a), 9)
		w.Close()
		want(t, "nobody can say", s.mustBuy(a, u, never, "1").told(t), sale.Busy)
	})
}

func TestATokenOfAnotherActivityIsRefused(t *testing.T) {
	t.Parallel()
	a, b := newActivity(10, 1), newActivity(10, 1)
	s := newShop(t, selling(a, b))
	u := newID()
	token := s.requestToken(u, b.ID)
	want(t, "another activity", s.mustBuy(a, u, token, "1").told(t), sale.BadRequestToken)
	forged := sale.NewTokenKey([]byte("somebody else's")).Sign(sale.TokenClaims{User: u, Activity: a.ID, Expires: 4_000_000_000_000})
	want(t, "forged", s.mustBuy(a, u, forged, "1").told(t), sale.BadRequestToken)
	want(t, "in its own", s.mustBuy(b, u, token, "1").told(t), sale.Accepted)
}

func TestCase50SomebodyElsesIsUnknown(t *testing.T) {
	t.Parallel()
	a := newActivity(10, 1)
	u1, u2 := newID(), newID()
	placed := order{token: readToken(u1, a.ID), user: u1, no: newID(), item: 1, state: sale.Paid}
	s := newShop(t, selling(a), askingWorkers(newOrderAPI(t, placed).URL))
	live := s.requestToken(u1, a.ID)
	want(t, "bought", s.mustBuy(a, u1, live, "1").told(t), sale.Accepted)
	same := func(what, theirs, unknown string) {
		t.Helper()
		x, y := s.do(request{"GET", theirs, "", as(s.jwt(u2))}), s.do(request{"GET", unknown, "", as(s.jwt(u2))})
		want(t, what, x.told(t), sale.NotFound)
		strip := func(r answerOf) string { return strings.ReplaceAll(string(r.body), r.header.Get("X-Request-Id"), "") }
		want(t, what+": body", strip(x), strip(y))
	}
	unused := "/api/requests/" + string(s.requestToken(u2, a.ID))
	same("a live token", "/api/requests/"+string(live), unused)
	same("a placed token", "/api/requests/"+string(placed.token), unused)
	same("no token at all", "/api/requests/xyz", unused)
	same("an order", "/api/orders/"+placed.no.String(), "/api/orders/"+newID().String())
	same("no number", "/api/orders/1e3", "/api/orders/1")
	mine := s.do(request{"GET", "/api/requests/" + string(live), "", as(s.jwt(u1))})
	want(t, "one's own", mine.field(t, "state"), any("occupied"))
	want(t, "outcome until placed", mine.told(t), sale.Accepted)
}

func TestTheCookieNeedsAnAllowedOrigin(t *testing.T) {
	t.Parallel()
	a := newActivity(10, 1)
	s := newShop(t, selling(a), askingWorkers(newOrderAPI(t).URL))
	u := newID()
	path := "/api/activities/" + a.ID.String() + "/token"
	for _, origin := range []string{"", "https://evil.test", "https://shop.test.evil.test", "https://notshop.test", "null", "http://shop.test", "https://shop.test/", "https://SHOP.test"} {
		h := map[string]string{"Cookie": sessionCookie + "=" + s.jwt(u)}
		if origin != "" {
			h["Origin"] = origin
		}
		want(t, "origin "+origin, s.do(request{"POST", path, "", h}).told(t), sale.Forbidden)
	}
	h := map[string]string{"Cookie": sessionCookie + "=" + s.jwt(u), "Origin": testOrigin}
	want(t, "the shop's own", s.do(request{"POST", path, "", h}).status, http.StatusOK)
	want(t, "reading", s.do(request{"GET", "/api/orders", "", map[string]string{"Cookie": sessionCookie + "=" + s.jwt(u)}}).status, http.StatusOK)
}

func TestWorkersFailOver(t *testing.T) {
	t.Parallel()
	u := newID()
	o := order{token: readToken(u, 1), user: u, no: newID(), item: 1, state: sale.PendingPayment}
	dead, alive := newOrderAPI(t), newOrderAPI(t, o)
	s := newShop(t, askingWorkers(dead.URL, alive.URL))
	dead.Close()
	for range 4 {
		r := s.do(request{"GET", "/api/orders/" + o.no.String(), "", as(s.jwt(u))})
		want(t, "byte for byte", string(r.body), o.json())
	}
	want(t, "the one that lives", alive.asked.Load(), 4)
	list := s.do(request{"GET", "/api/orders?limit=7&cursor=99", "", as(s.jwt(u))})
	want(t, "limit and cursor are passed on", list.field(t, "nextCursor"), any("799"))
	for _, q := range []string{"limit=0", "limit=101", "limit=x", "limit=100000000", "cursor=-1", "cursor=", "limit="} {
		want(t, q, s.do(request{"GET", "/api/orders?" + q, "", as(s.jwt(u))}).told(t), sale.BadRequest)
	}
}

func TestDemoLogin(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(s *setup) { s.deps.Demo = true })
	r := s.do(request{"POST", "/api/demo/login", `{"userId":"9007199254740993"}`, nil})
	want(t, "user", r.field(t, "userId"), any("9007199254740993"))
	user, ok := s.edge.known.user([]byte(r.field(t, "token").(string)))
	want(t, "the token is good", ok, true)
	want(t, "for that user", user, sale.ID(9007199254740993))
	a, b := s.do(request{"POST", "/api/demo/login", "", nil}), s.do(request{"POST", "/api/demo/login", " {} ", nil})
	if a.field(t, "userId") == b.field(t, "userId") {
		t.Error("two strangers are one user")
	}
	for _, body := range []string{`{"userId":"0"}`, `{"userId":"1","userId":"2"}`, `{"admin":true}`, `[]`, `null`, `{`, `{} x`} {
		want(t, body, s.do(request{"POST", "/api/demo/login", body, nil}).told(t), sale.BadRequest)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(s *setup) { s.deps.Pages, s.deps.SocketURL = testPages, "wss://push.shop.test/ws" })
	plain := s.do(request{"GET", "/", "", map[string]string{"Accept-Encoding": "identity"}})
	if !strings.Contains(string(plain.body), "data-socket='wss://push.shop.test/ws' data-demo='false'") {
		t.Errorf("placeholders: %.90s", plain.body)
	}
	if csp := plain.header.Get("Content-Security-Policy"); !strings.Contains(csp, "connect-src 'self' wss://push.shop.test;") {
		t.Errorf("policy %q", csp)
	}
	zipped := s.do(request{"GET", "/", "", map[string]string{"Accept-Encoding": "br, gzip;q=0.5"}})
	want(t, "encoding", zipped.header.Get("Content-Encoding"), "gzip")
	r, err := gzip.NewReader(strings.NewReader(string(zipped.body)))
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err)
	want(t, "content", string(text), string(plain.body))
	if plain.header.Get("ETag") == zipped.header.Get("ETag") {
		t.Error("one strong tag for two forms")
	}
	want(t, "gzip refused", s.do(request{"GET", "/", "", map[string]string{"Accept-Encoding": "gzip;q=0"}}).header.Get("Content-Encoding"), "")
	want(t, "activity page", s.do(request{"GET", "/a/77", "", nil}).status, http.StatusOK)
	want(t, "for ever", s.do(request{"GET", "/app.js", "", nil}).header.Get("Cache-Control"), cacheForever)
	want(t, "too small to zip", s.do(request{"GET", "/small.css", "", map[string]string{"Accept-Encoding": "gzip"}}).header.Get("Content-Encoding"), "")
	want(t, "method", s.do(request{"POST", "/", "", nil}).told(t), sale.NotFound)
	want(t, "head", len(s.do(request{"HEAD", "/", "", nil}).body), 0)
	want(t, "unknown", s.do(request{"GET", "/../etc/passwd", "", nil}).told(t), sale.NotFound)
}

func TestWhatIsNoHTTPForUs(t *testing.T) {
	t.Parallel()
	a := newActivity(10, 1)
	s := newShop(t, selling(a))
	starts := func(what, text, status string) {
		t.Helper()
		if got := s.raw(text); !strings.HasPrefix(got, "HTTP/1.1 "+status) || !strings.Contains(got, "X-Request-Id: ") {
			t.Errorf("%s: %q, want %s", what, got, status)
		}
	}
	starts("a length beside chunks", "POST "+buyPath(a, 0)+" HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400")
	starts("chunks before a length", "POST "+buyPath(a, 0)+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n", "400")
	starts("chunks alone", "POST "+buyPath(a, 0)+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "401")
	starts("large headers", "GET / HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 10<<10)+"\r\n\r\n", "431")
	starts("a large body", "POST "+buyPath(a, 0)+" HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n", "413")
	starts("no HTTP", "HELLO\r\n\r\n", "400")
	for _, r := range []request{{"GET", buyPath(a, 0), "", nil}, {"PUT", buyPath(a, 0), "{}", nil}, {"POST", "/api/orders", "{}", nil},
		{"POST", "/api/activities/" + a.ID.String() + "/items/1/orders/", "{}", nil}, {"GET", "/api/", "", nil}, {"POST", "/api/activities//token", "", nil}} {
		want(t, r.method+" "+r.path, s.do(r).told(t), sale.NotFound)
	}
}

func TestRequestsAreTheSumOfVerdicts(t *testing.T) {
	t.Parallel()
	a := newActivity(3, 1)
	s := newShop(t, selling(a))
	s.tally(50, func(int) (answerOf, error) { u := newID(); return s.buy(a, u, s.requestToken(u, a.ID), "1") })
	s.do(request{"GET", "/api/time", "", nil})
	s.do(request{"GET", "/nothing", "", nil})
	s.raw("HELLO\r\n\r\n")
	families, err := s.metrics.Gather()
	must(t, err)
	var requests, verdicts float64
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "floodgate_edge_requests_total":
				requests = m.GetCounter().GetValue()
			case "floodgate_edge_verdicts_total":
				verdicts += m.GetCounter().GetValue()
			}
		}
	}
	want(t, "requests", requests, 53)
	want(t, "verdicts", verdicts, requests)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for key, change := range map[string]func(*Config){
		"edge.allowed_origins": func(c *Config) { c.AllowedOrigins = []string{"https://shop.test/"} },
		"edge.trusted_proxies": func(c *Config) { c.TrustedProxies = []string{"10.0.0.0/99"} },
		"edge.workers":         func(c *Config) { c.Workers = []string{"127.0.0.1:8082"} },
		"edge.token_ttl":       func(c *Config) { c.TokenTTL = 0 },
		"edge.waiting":         func(c *Config) { c.Waiting = 0 },
		"edge.read_timeout":    func(c *Config) { c.ReadTimeout = time.Hour },
	} {
		cfg := testConfig()
		change(&cfg)
		if _, err := cfg.check(); err == nil || !strings.HasPrefix(err.Error(), key+":") {
			t.Errorf("%s: %v", key, err)
		}
	}
	cfg := testConfig()
	cfg.TrustedProxies = []string{"10.0.0.0/8", "::1"}
	proxies, err := cfg.check()
	must(t, err)
	want(t, "a bare address is itself", proxies[1].String(), "::1/128")
}
