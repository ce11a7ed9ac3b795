package console

import (
	"encoding/json"
	"net/http"
	"testing"
)

// Every answer has an id, which a refusal repeats; a call that does not exist is refused like any other.
func TestAnswersAreNumbered(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		for _, path := range []string{"/livez", "/metrics", "/admin/api/activities", "/admin/api/nothing", "/console/"} {
			r, err := http.NewRequestWithContext(w.ctx, "GET", w.url+path, nil)
			must(t, err)
			r.Header.Set("Authorization", "Bearer "+operator)
			resp, err := http.DefaultClient.Do(r)
			must(t, err)
			var refused struct {
				Error     struct{ Code string }
				RequestID string `json:"requestId"`
			}
			_ = json.NewDecoder(resp.Body).Decode(&refused) // not all of them are JSON
			must(t, resp.Body.Close())
			id := resp.Header.Get("X-Request-Id")
			if len(id) != 16 {
				t.Errorf("%s: X-Request-Id %q", path, id)
			}
			if path == "/admin/api/nothing" && (resp.StatusCode != http.StatusNotFound || refused.Error.Code != "not_found" || refused.RequestID != id) {
				t.Errorf("%s: %d %+v, X-Request-Id %q", path, resp.StatusCode, refused, id)
			}
		}
	})
}
