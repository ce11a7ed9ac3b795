package worker

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"floodgate/identity"
	"floodgate/sale"
)

// Edges ask in a user's name, by a signature that only our processes can make; nobody reads what belongs to another.
func TestOrderAPI(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		const user, other sale.ID = 9007199254740993, 2
		a := w.activity(5, 1)
		w.start(1)
		w.opened(a)
		m := w.reserve(a, user)
		w.send(m)
		o := w.order(m.Token)
		asked := w.worker()
		t.Cleanup(func() { _ = asked.Listener.Close() })
		_, err := asked.look(w.t.Context())
		must(w.t, err)
		stranger := identity.NewInternal([]byte("another shop's secret of 32 bytes, or more"))
		ask := func(signer *identity.Internal, path string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(w.t.Context(), "GET", path, nil)
			if signer != nil {
				signer.SignRequest(r, nil)
			}
			answer := httptest.NewRecorder()
			asked.api().ServeHTTP(answer, r)
			return answer
		}
		byNo, byToken := "/internal/orders/"+o.No.String()+"?user=", "/internal/requests/"+string(m.Token)+"?user="
		for _, c := range []struct {
			what   string
			signer *identity.Internal
			path   string
			want   int
		}{
			{"unsigned", nil, byNo + user.String(), http.StatusUnauthorized},
			{"signed by another shop", stranger, byNo + user.String(), http.StatusUnauthorized},
			{"without a user", w.internal, byNo, http.StatusBadRequest},
			{"by number", w.internal, byNo + user.String(), http.StatusOK},
			{"by number, another's", w.internal, byNo + other.String(), http.StatusNotFound},
			{"by token", w.internal, byToken + user.String(), http.StatusOK},
			{"by token, another's", w.internal, byToken + other.String(), http.StatusNotFound},
			{"a list too long", w.internal, "/internal/orders?limit=101&user=" + user.String(), http.StatusBadRequest},
		} {
			if got := ask(c.signer, c.path); got.Code != c.want {
				w.t.Errorf("%s: %d %s, want %d", c.what, got.Code, got.Body, c.want)
			}
		}
		for id, want := range map[sale.ID]int{user: 1, other: 0} {
			var list struct {
				Orders []struct{ OrderNo, Price, State string }
			}
			must(w.t, json.Unmarshal(ask(w.internal, "/internal/orders?user="+id.String()).Body.Bytes(), &list))
			if len(list.Orders) != want || want == 1 && (list.Orders[0].OrderNo != o.No.String() || list.Orders[0].Price != "99.00" || list.Orders[0].State != "pending_payment") {
				w.t.Errorf("orders of user %s: %+v", id, list)
			}
		}
	})
}

// While the stock is being proven, a token that has no row yet may still lie in the queue: nobody is told that it is unknown.
func TestNobodyIsUnknownWhileTheStockIsProven(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(5, 1)
		w.opened2(a)
		m := w.reserve(a, 1)
		w.send(m)
		w.restart(a)
		one := w.worker()
		t.Cleanup(func() { _ = one.Listener.Close() })
		status := func() int {
			r := httptest.NewRequestWithContext(w.t.Context(), "GET", "/internal/requests/"+string(m.Token)+"?user=1", nil)
			w.internal.SignRequest(r, nil)
			answer := httptest.NewRecorder()
			one.api().ServeHTTP(answer, r)
			return answer.Code
		}
		if got := status(); got != http.StatusServiceUnavailable {
			w.t.Fatalf("before the first look: %d", got)
		}
		_, err := one.look(w.t.Context())
		must(w.t, err)
		if got := status(); got != http.StatusServiceUnavailable {
			w.t.Fatalf("not proven: %d", got)
		}
		w.start(1)
		w.order(m.Token)
		if got := status(); got != http.StatusOK {
			w.t.Fatalf("placed: %d", got)
		}
		m.Token = w.token(1, a.ID)
		w.eventually("a token never used is unknown", func() bool {
			_, err := one.look(w.t.Context())
			return err == nil && status() == http.StatusNotFound
		})
	})
}
