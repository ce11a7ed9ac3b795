package edge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
)

// contract checks answers against docs/openapi.yaml and remembers which of its answers it has seen.
type contract struct {
	t      *testing.T
	doc    *openapi3.T
	router routers.Router
	seen   map[string]bool
}

func readContract(t *testing.T) *contract {
	doc, err := openapi3.NewLoader().LoadFromFile("../docs/openapi.yaml")
	must(t, err)
	must(t, doc.Validate(t.Context()))
	router, err := legacy.NewRouter(doc)
	must(t, err)
	return &contract{t, doc, router, map[string]bool{}}
}

// check sends a request and holds request and answer against the document.
func (c *contract) check(s *shop, r request, status int) answerOf {
	c.t.Helper()
	a := s.do(r)
	if a.status != status {
		c.t.Errorf("%s %s: status %d (%s), want %d", r.method, r.path, a.status, a.body, status)
	}
	q, err := http.NewRequest(r.method, r.path, strings.NewReader(r.body))
	must(c.t, err)
	q.Header.Set("Content-Type", "application/json")
	route, params, err := c.router.FindRoute(q)
	if err != nil {
		c.t.Fatalf("%s %s is not in the document: %v", r.method, r.path, err)
	}
	options := &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}
	input := &openapi3filter.RequestValidationInput{Request: q, PathParams: params, Route: route, Options: options}
	if status < 300 {
		if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
			c.t.Errorf("%s %s: the request: %v", r.method, r.path, err)
		}
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{RequestValidationInput: input,
		Status: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), Options: options})
	if err != nil {
		c.t.Errorf("%s %s: the answer %d %s: %v", r.method, r.path, a.status, a.body, err)
	}
	c.seen[route.Method+" "+route.Path+" "+strconv.Itoa(a.status)] = true
	return a
}

// complete fails for every answer of the document that was not seen, save those that are named.
func (c *contract) complete(later ...string) {
	for path, p := range c.doc.Paths.Map() {
		for method, op := range p.Operations() {
			for status := range op.Responses.Map() {
				key := method + " " + path + " " + status
				if !c.seen[key] && !contains(later, status) && !contains(later, key) {
					c.t.Errorf("the document's answer %s was not seen", key)
				}
			}
		}
	}
}

func init() {
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.RegisteredBodyDecoder("text/plain"))
}

func contains(list []string, x string) bool {
	for _, l := range list {
		if l == x {
			return true
		}
	}
	return false
}

var testPages = []Page{
	{Path: "/index.html", ContentType: "text/html; charset=utf-8", Body: []byte("<!doctype html><body data-socket='{{socket}}' data-demo='{{demo}}'>" + strings.Repeat("list ", 200))},
	{Path: "/activity.html", ContentType: "text/html; charset=utf-8", Body: []byte("<!doctype html>" + strings.Repeat("activity ", 200))},
	{Path: "/app.js", ContentType: "text/javascript; charset=utf-8", Body: []byte(strings.Repeat("// the page\n", 200)), Immutable: true},
	{Path: "/small.css", ContentType: "text/css; charset=utf-8", Body: []byte("p{}")},
}

func TestTheContractHolds(t *testing.T) {
	t.Parallel()
	c := readContract(t)
	a, soon, over := newActivity(10, 1), newActivity(10, 1), newActivity(10, 1)
	sold := newActivity(1, 1)
	soon.StartsAt = soon.EndsAt - 1000
	over.StartsAt, over.EndsAt = over.StartsAt-10_000_000, over.StartsAt
	u := newID()
	forgotten := order{token: readToken(u, a.ID), user: u, no: newID(), item: 7, state: sale.PendingPayment}
	w := newOrderAPI(t, forgotten)
	s := newShop(t, selling(a, soon, over, sold), askingWorkers(w.URL), func(s *setup) {
		s.deps.Demo, s.deps.Pages, s.deps.SocketURL = true, testPages, "wss://push.shop.test/ws"
	})
	api := func(x sale.Activity) string { return "/api/activities/" + x.ID.String() }
	me := as(s.jwt(u))
	big := `{"requestToken":"` + strings.Repeat("x", 20<<10) + `"}`

	c.check(s, request{"GET", "/", "", nil}, 200)
	c.check(s, request{"GET", "/a/" + a.ID.String(), "", nil}, 200)
	etag := s.do(request{"GET", "/", "", nil}).header.Get("ETag")
	c.check(s, request{"GET", "/", "", map[string]string{"If-None-Match": etag}}, 304)
	c.check(s, request{"GET", "/a/1", "", map[string]string{"If-None-Match": "*"}}, 304)
	c.check(s, request{"GET", "/a/007", "", nil}, 404)
	c.check(s, request{"GET", "/api/time", "", nil}, 200)
	c.check(s, request{"GET", "/api/activities", "", nil}, 200)
	c.check(s, request{"GET", api(a), "", nil}, 200)
	c.check(s, request{"GET", "/api/activities/1", "", nil}, 404)

	issued := c.check(s, request{"POST", api(a) + "/token", "{}", me}, 200)
	token := sale.Token(issued.field(t, "requestToken").(string))
	c.check(s, request{"POST", api(a) + "/token", `{"answer":"1","x":1}`, me}, 400)
	c.check(s, request{"POST", api(a) + "/token", "", nil}, 401)
	c.check(s, request{"POST", api(a) + "/token", "", map[string]string{"Cookie": "fg_session=" + s.jwt(u)}}, 403)
	c.check(s, request{"POST", "/api/activities/1/token", "", me}, 404)
	c.check(s, request{"POST", api(over) + "/token", "", me}, 410)
	c.check(s, request{"POST", api(a) + "/token", big, me}, 413)
	c.check(s, request{"POST", api(soon) + "/token", "", me}, 425)

	c.check(s, request{"POST", buyPath(a, 0), buyBody(token, "1"), me}, 202)
	c.check(s, request{"POST", buyPath(a, 0), buyBody(token, "0"), me}, 400)
	c.check(s, request{"POST", buyPath(a, 0), buyBody(token, "1"), nil}, 401)
	c.check(s, request{"POST", buyPath(a, 0), buyBody("forged", "1"), me}, 403)
	c.check(s, request{"POST", "/api/activities/1/items/2/orders", buyBody(token, "1"), me}, 404)
	want(t, "duplicate", c.check(s, request{"POST", buyPath(a, 0), buyBody(s.requestToken(u, a.ID), "1"), me}, 409).told(t), sale.Duplicate)
	c.check(s, request{"POST", buyPath(sold, 0), buyBody(s.requestToken(u, sold.ID), "1"), me}, 202)
	other := newID()
	late := c.check(s, request{"POST", buyPath(sold, 0), buyBody(s.requestToken(other, sold.ID), "1"), as(s.jwt(other))}, 409)
	want(t, "sold out", late.told(t), sale.SoldOut)
	want(t, "waitlist", late.field(t, "error", "waitlist"), any(false))
	c.check(s, request{"POST", buyPath(over, 0), buyBody(token, "1"), me}, 410)
	c.check(s, request{"POST", buyPath(a, 0), big, me}, 413)
	c.check(s, request{"POST", buyPath(soon, 0), buyBody(token, "1"), me}, 425)

	c.check(s, request{"GET", "/api/requests/" + string(token), "", me}, 200)
	placed := c.check(s, request{"GET", "/api/requests/" + string(forgotten.token), "", me}, 200)
	want(t, "order of a forgotten token", placed.field(t, "orderNo"), any(forgotten.no.String()))
	c.check(s, request{"GET", "/api/requests/" + string(token), "", nil}, 401)
	c.check(s, request{"GET", "/api/requests/" + string(s.requestToken(u, a.ID)), "", me}, 404)
	c.check(s, request{"GET", "/api/orders?limit=5&cursor=77", "", me}, 200)
	c.check(s, request{"GET", "/api/orders?limit=101", "", me}, 400)
	c.check(s, request{"GET", "/api/orders", "", nil}, 401)
	c.check(s, request{"GET", "/api/orders/" + forgotten.no.String(), "", me}, 200)
	c.check(s, request{"GET", "/api/orders/" + forgotten.no.String(), "", nil}, 401)
	c.check(s, request{"GET", "/api/orders/1", "", me}, 404)
	c.check(s, request{"POST", "/api/demo/login", `{"userId":"77"}`, nil}, 200)
	c.check(s, request{"POST", "/api/demo/login", `{"userId":77}`, nil}, 400)
	c.check(s, request{"POST", "/api/demo/login", big, nil}, 413)
	plain := newShop(t)
	c.check(plain, request{"POST", "/api/demo/login", "", nil}, 404)
	c.check(plain, request{"GET", "/", "", nil}, 404)

	c.checkBusy(s, w, a)
	c.complete("429") // limits are not built yet
}

// checkBusy holds the busy answers against the document.
func (c *contract) checkBusy(s *shop, w *orderAPI, a sale.Activity) {
	u := newID()
	me := as(s.jwt(u))
	s.queue.failWith(func([]sale.Message) error { return errors.New("full") })
	c.check(s, request{"POST", buyPath(a, 0), buyBody(s.requestToken(u, a.ID), "1"), me}, 503)
	s.queue.failWith(func([]sale.Message) error { return mq.ErrUnanswered })
	u = newID()
	c.check(s, request{"POST", buyPath(a, 0), buyBody(s.requestToken(u, a.ID), "1"), as(s.jwt(u))}, 202)
	w.Close()
	c.check(s, request{"GET", "/api/orders", "", me}, 503)
	c.check(s, request{"GET", "/api/orders/1", "", me}, 503)
	c.check(s, request{"GET", "/api/requests/" + string(s.requestToken(u, a.ID)), "", as(s.jwt(u))}, 503)
	must(c.t, s.ledger.Pause(c.t.Context(), lua.Cell{Activity: a.ID}))
	eventually(c.t, "paused", func() bool { return s.refusedAs(a) == sale.Busy })
	c.check(s, request{"POST", "/api/activities/" + a.ID.String() + "/token", "", me}, 503)
	s.edge.draining.Store(true)
	defer s.edge.draining.Store(false)
	for path, p := range c.doc.Paths.Map() {
		path = strings.NewReplacer("{activity}", a.ID.String(), "{item}", "1", "{requestToken}", "x", "{orderNo}", "1").Replace(path)
		for method := range p.Operations() {
			want(c.t, "draining", c.check(s, request{method, path, "", me}, 503).told(c.t), sale.Busy)
		}
	}
	html := c.check(s, request{"GET", "/", "", map[string]string{"Accept": "text/html,*/*;q=0.8"}}, 503)
	want(c.t, "the busy page", string(html.body), string(busyPage))
}

func readToken(user, activity sale.ID) sale.Token {
	return sale.NewTokenKey(secret).Sign(sale.TokenClaims{User: user, Activity: activity, Nonce: 1, Expires: 4_000_000_000_000})
}
