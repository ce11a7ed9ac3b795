package edge

import (
	"encoding/json"
	"testing"

	"floodgate/sale"
)

// FuzzBody holds the strict reader against encoding/json: whatever it takes, the library reads the same way.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`{"requestToken":"abc","quantity":1}`, ` { "quantity" : 12 , "requestToken" : "x" } `, `{"requestToken":"a","quantity":1e3}`,
		`{"requestToken":"a","quantity":1,"quantity":2}`, `{"requestToken":"","quantity":1}`, `{}`, `[]`, `{"requestToken":"\u0061","quantity":1}`,
		`{"requestToken":"a","quantity":01}`, `{"requestToken":"a","quantity":1}x`, `{"requestToken":"a","quantity":1,}`, "{\"requestToken\":\"\xff\",\"quantity\":1}", ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		token, quantity, ok := parseOrder(body)
		if !ok {
			return
		}
		var v map[string]any
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatalf("%q was taken: %v", body, err)
		}
		if len(v) != 2 || v["requestToken"] != string(token) || v["quantity"] != float64(quantity) || quantity < 1 || quantity > 999 {
			t.Fatalf("%q was read as %q, %d", body, token, quantity)
		}
	})
}

// FuzzPath asks the router for any path: it never panics and knows nothing that was not asked for exactly.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/api/activities/1/items/2/orders", "/api/activities/", "/api/activities/1/token", "/api/requests/", "/a/1", "/", "//", "/api/orders/9", "/%2e%2e/", "/api/activities/1/items//orders", "/api/activities/1/items/2/orders?x=1"} {
		f.Add("POST", s)
		f.Add("GET", s)
	}
	s := newShop(f, selling(newActivity(1, 1)))
	f.Fuzz(func(t *testing.T, method, path string) {
		ctx := requestOf("/")
		ctx.Request.Header.SetMethod(method)
		ctx.Request.SetRequestURI(path)
		s.edge.serve(ctx)
		if len(ctx.Response.Header.Peek("X-Request-Id")) != idLen {
			t.Errorf("%s %q: no request id", method, path)
		}
		if s := ctx.Response.StatusCode(); s == 202 || s >= 500 {
			t.Errorf("%s %q: status %d", method, path, s)
		}
	})
}

// FuzzToken tries request tokens: only one that the key signed is taken, byte for byte.
func FuzzToken(f *testing.F) {
	key := sale.NewTokenKey(secret)
	good := key.Sign(sale.TokenClaims{User: 1, Activity: 2, Nonce: 3, Expires: 4_000_000_000_000})
	f.Add(string(good))
	f.Add(string(good[:58]) + "A")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		claims, err := key.Parse(sale.Token(text))
		if err == nil && key.Sign(claims) != sale.Token(text) {
			t.Fatalf("%q was taken", text)
		}
	})
}
