package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"floodgate/sale"
)

// reply is an answer as it came; status 0 is none.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// code is what the buyer is told: an outcome, or the code of a refusal.
func (a reply) code() string {
	var v struct {
		Outcome string
		Error   struct{ Code string }
	}
	if json.Unmarshal(a.body, &v) != nil {
		return fmt.Sprintf("HTTP %d %q", a.status, a.body)
	}
	return cmp.Or(v.Error.Code, v.Outcome, fmt.Sprintf("HTTP %d", a.status))
}

// field is a value of the body, as a browser's JSON.parse gives it; nil where there is none.
func (a reply) field(path ...string) any {
	var v any
	_ = json.Unmarshal(a.body, &v) // no JSON has no field
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

// person is somebody with a login.
type person struct {
	rig *rig
	id  sale.ID
	jwt string
}

func (r *rig) person() *person { return r.named(sale.ID(rand.Int64N(1<<62) + 1)) }

func (r *rig) named(id sale.ID) *person {
	jwt, err := r.signer.Sign(id, time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	return &person{r, id, jwt}
}

// at gives the edges in turn.
func at(i int) string { return fmt.Sprintf("edge-%d", 1+i%2) }

// send makes one request to an edge, without repeats.
func (r *rig) send(edge, method, path, body string, h http.Header) reply {
	req, err := http.NewRequest(method, "http://"+r.procs[edge].addr["edge"]+path, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return reply{}
	}
	maps.Copy(req.Header, h)
	res, err := r.client.Do(req)
	if err != nil {
		return reply{}
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}
	}
	return reply{res.StatusCode, res.Header, got}
}

func bearer(jwt string) http.Header { return http.Header{"Authorization": {"Bearer " + jwt}} }

func (p *person) send(edge, method, path, body string) reply {
	return p.rig.send(edge, method, path, body, bearer(p.jwt))
}

func (p *person) get(edge, path string) reply { return p.send(edge, "GET", path, "") }

// token gets a request token.
func (p *person) token(activity sale.ID) sale.Token {
	for i := range 3 { // the other edge, where one has just come back
		if token, ok := p.send(at(int(p.id)+i), "POST", tokenPath(activity), "{}").field("requestToken").(string); ok {
			return sale.Token(token)
		}
	}
	p.rig.t.Errorf("user %s gets no request token", p.id)
	return ""
}

func tokenPath(activity sale.ID) string { return fmt.Sprintf("/api/activities/%s/token", activity) }

func buyPath(activity, item sale.ID) string {
	return fmt.Sprintf("/api/activities/%s/items/%s/orders", activity, item)
}

func buyBody(token sale.Token, quantity any) string {
	return fmt.Sprintf(`{"requestToken":%q,"quantity":%v}`, token, quantity)
}

// buy clicks once with a fresh token.
func (p *person) buy(edge string, activity, item sale.ID, quantity int) (reply, sale.Token) {
	token := p.token(activity)
	return p.send(edge, "POST", buyPath(activity, item), buyBody(token, quantity)), token
}

// crowd does n things at once and counts what was told.
func crowd(n int, do func(i int) reply) map[string]int {
	var mu sync.Mutex
	told := map[string]int{}
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			code := do(i).code()
			mu.Lock()
			defer mu.Unlock()
			told[code]++
		})
	}
	close(start)
	all.Wait()
	return told
}

// told demands counts of answers, and nothing else.
func (r *rig) told(what string, got, want map[string]int) {
	r.t.Helper()
	if !maps.Equal(got, want) {
		r.t.Errorf("%s: told %v, want %v", what, got, want)
	}
}

func equal[T comparable](r *rig, what string, got, want T) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// final polls a token until its outcome is final.
func (p *person) final(edge string, token sale.Token, within time.Duration) reply {
	p.rig.t.Helper()
	var a reply
	if !poll(context.Background(), within, func() bool {
		a = p.get(edge, "/api/requests/"+string(token))
		return a.status == http.StatusOK && a.code() != "accepted"
	}) {
		p.rig.t.Errorf("user %s token %s: no final outcome within %s: %d %s", p.id, token, within, a.status, a.body)
	}
	return a
}

// nonce makes request tokens differ that tests sign themselves.
var nonce atomic.Uint64

func contains(a reply, text string) bool { return bytes.Contains(a.body, []byte(text)) }
