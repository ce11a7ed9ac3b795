package edge

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"floodgate/sale"
)

// answerOf is an HTTP answer, read.
type answerOf struct {
	status int
	header http.Header
	body   []byte
	closed bool // the server closes the connection
}

// request is one HTTP request of a test.
type request struct {
	method, path, body string
	header             map[string]string
}

func (s *shop) do(r request) answerOf {
	s.t.Helper()
	a, err := s.try(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	return a
}

// try may be called from any goroutine.
func (s *shop) try(r request) (answerOf, error) {
	q, err := http.NewRequest(r.method, s.url+r.path, strings.NewReader(r.body))
	if err != nil {
		return answerOf{}, err
	}
	for k, v := range r.header {
		q.Header.Set(k, v)
	}
	res, err := s.client.Do(q)
	if err != nil {
		return answerOf{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answerOf{res.StatusCode, res.Header, body, res.Close}, err
}

func as(jwt string) map[string]string { return map[string]string{"Authorization": "Bearer " + jwt} }

func buyPath(a sale.Activity, item int) string {
	return "/api/activities/" + a.ID.String() + "/items/" + a.Items[item].Commodity.String() + "/orders"
}

func buyBody(token sale.Token, quantity string) string {
	return `{"requestToken":"` + string(token) + `","quantity":` + quantity + `}`
}

// buy is one attempt; may be called from any goroutine.
func (s *shop) buy(a sale.Activity, user sale.ID, token sale.Token, quantity string) (answerOf, error) {
	return s.try(request{"POST", buyPath(a, 0), buyBody(token, quantity), as(s.jwt(user))})
}

func (s *shop) mustBuy(a sale.Activity, user sale.ID, token sale.Token, quantity string) answerOf {
	s.t.Helper()
	r, err := s.buy(a, user, token, quantity)
	must(s.t, err)
	return r
}

// told is the code or outcome of an answer; it also checks what every answer must have.
func (a answerOf) told(t testing.TB) sale.Code {
	t.Helper()
	var b struct {
		Outcome   sale.Code `json:"outcome"`
		RequestID string    `json:"requestId"`
		Error     struct {
			Code    sale.Code `json:"code"`
			Message string    `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(a.body, &b); err != nil {
		t.Fatalf("status %d, body %q: %v", a.status, a.body, err)
	}
	id := a.header.Get("X-Request-Id")
	if len(id) != idLen {
		t.Errorf("X-Request-Id %q", id)
	}
	if b.Error.Code == "" {
		return b.Outcome
	}
	if b.RequestID != id || b.Error.Message == "" {
		t.Errorf("body %s, X-Request-Id %s", a.body, id)
	}
	if want := b.Error.Code.Verdict().HTTP; a.status != want && b.Error.Code != sale.BadRequest {
		t.Errorf("%s with status %d, want %d", b.Error.Code, a.status, want)
	}
	return b.Error.Code
}

func (a answerOf) field(t testing.TB, path ...string) any {
	t.Helper()
	var v any
	must(t, json.Unmarshal(a.body, &v))
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// eventually polls with a deadline; it waits on a timer, not on luck.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		case <-tick.C:
		}
	}
}

// onBoth runs a test on miniredis and on real Redis.
func onBoth(t *testing.T, test func(t *testing.T, option func(*setup))) {
	t.Run("miniredis", func(t *testing.T) { t.Parallel(); test(t, func(*setup) {}) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, onRealRedis(t)) })
}

// tally buys in parallel and counts what was told.
func (s *shop) tally(n int, buy func(i int) (answerOf, error)) map[sale.Code]int {
	s.t.Helper()
	var wg sync.WaitGroup
	answers := make([]answerOf, n)
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { answers[i], errs[i] = buy(i) })
	}
	wg.Wait()
	must(s.t, errors.Join(errs...))
	count := map[sale.Code]int{}
	for _, a := range answers {
		count[a.told(s.t)]++
	}
	return count
}
