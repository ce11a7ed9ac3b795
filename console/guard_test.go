package console

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Only the token opens the door, and a browser's page cannot push through it.
func TestGuard(t *testing.T) {
	t.Parallel()
	w, _ := newMortal(t)
	for _, path := range []string{"/admin/api/activities", "/debug/pprof/", "/debug/pprof/goroutine", "/admin/api/nothing"} {
		for _, token := range []string{"", "Bearer ", "Bearer " + operator + "x", "bearer " + operator, operator} {
			if status, text := w.call("GET", path, "", "Authorization", token); status != http.StatusUnauthorized {
				t.Errorf("%s with %q: %d %s", path, token, status, text)
			}
		}
	}
	for _, path := range []string{"/admin/api/activities", "/debug/pprof/", "/livez", "/readyz", "/metrics"} {
		if status, text := w.call("GET", path, "", "Origin", "http://evil.example"); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _ := w.call("POST", "/admin/api/activities", "{}", "Origin", "http://evil.example"); status != http.StatusForbidden {
		t.Errorf("a browser's page was let in: %d", status)
	}
	for _, token := range []string{"short", ""} {
		if _, err := New(w.cfg, Deps{Token: token}); err == nil {
			t.Errorf("operator token %q is accepted", token)
		}
	}
}

func TestOps(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "floodgate_test_total"})
	registry.MustRegister(counter)
	counter.Inc()
	var ready error
	h := Ops(registry, func() error { return ready })
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	for path, want := range map[string]string{"/livez": "ok", "/readyz": "ok", "/metrics": "floodgate_test_total 1"} {
		if status, text := get(path); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	ready = errors.New("the stock is being proven")
	if status, text := get("/readyz"); status != http.StatusServiceUnavailable || !bytes.Contains([]byte(text), []byte("being proven")) {
		t.Errorf("not ready: %d %s", status, text)
	}
	if status, _ := get("/livez"); status != http.StatusOK {
		t.Errorf("alive, and answers %d", status)
	}
}
