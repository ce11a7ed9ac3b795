package identity_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"floodgate/identity"
)

func TestInternalOverHTTP(t *testing.T) {
	t.Parallel()
	i := identity.NewInternal([]byte(secret))
	answers := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answers <- i.Check(r.Method, r.RequestURI, r.Header.Get, body, time.Now())
	}))
	defer srv.Close()
	send := func(method, path, body string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		i.SignRequest(r, []byte(body))
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return <-answers
	}
	for _, path := range []string{"", "/", "/internal/orders?user=1&limit=20&before=", "/a%20b/%2F?x=%20&y=a+b"} {
		if err := send("GET", path, ""); err != nil {
			t.Errorf("GET %q: %v", path, err)
		}
		if err := send("POST", path, `{"a":1}`); err != nil {
			t.Errorf("POST %q: %v", path, err)
		}
	}
}

func TestInternalRefuses(t *testing.T) {
	t.Parallel()
	i := identity.NewInternal([]byte(secret))
	r := httptest.NewRequest("GET", "/internal/orders?user=1", nil)
	body := []byte("body")
	i.SignRequest(r, body)
	now := time.Now()
	type request struct {
		method, uri string
		body        []byte
		now         time.Time
	}
	good := request{"GET", "/internal/orders?user=1", body, now}
	check := func(why string, change func(*request), want error) {
		t.Helper()
		c := good
		change(&c)
		if err := i.Check(c.method, c.uri, r.Header.Get, c.body, c.now); !errors.Is(err, want) {
			t.Errorf("%s: got %v", why, err)
		}
	}
	check("as signed", func(*request) {}, nil)
	check("29 s later", func(c *request) { c.now = now.Add(29 * time.Second) }, nil)
	check("29 s earlier", func(c *request) { c.now = now.Add(-29 * time.Second) }, nil)
	check("too old", func(c *request) { c.now = now.Add(31 * time.Second) }, identity.ErrSignature)
	check("from the future", func(c *request) { c.now = now.Add(-31 * time.Second) }, identity.ErrSignature)
	check("method", func(c *request) { c.method = "POST" }, identity.ErrSignature)
	check("query", func(c *request) { c.uri = "/internal/orders?user=2" }, identity.ErrSignature)
	check("body", func(c *request) { c.body = []byte("bodY") }, identity.ErrSignature)

	if err := identity.NewInternal([]byte("another")).Check("GET", good.uri, r.Header.Get, body, now); !errors.Is(err, identity.ErrSignature) {
		t.Errorf("another key: %v", err)
	}
	at, sig := r.Header.Get(identity.TimeHeader), r.Header.Get(identity.SignatureHeader)
	for _, h := range [][2]string{{"", sig}, {at, ""}, {"0" + at, sig}, {"-1", sig}, {"9223372036854775807", sig}, {at, sig[:62]}, {at, strings.Repeat("g", 64)}, {at, string(bytes.Repeat([]byte("0"), 64))}} {
		header := func(name string) string {
			if name == identity.TimeHeader {
				return h[0]
			}
			return h[1]
		}
		if err := i.Check("GET", good.uri, header, body, now); !errors.Is(err, identity.ErrSignature) {
			t.Errorf("headers %q: %v", h, err)
		}
	}
}
