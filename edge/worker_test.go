package edge

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"floodgate/identity"
	"floodgate/sale"
)

// orderAPI is a worker's order API with orders of the test, which checks what an edge signs.
type orderAPI struct {
	*httptest.Server
	asked  atomic.Int64
	orders []order
}

type order struct {
	token  sale.Token
	user   sale.ID
	no     sale.ID
	item   sale.ID
	state  sale.Code
	reason string
}

func (o order) json() string {
	return `{"orderNo":"` + o.no.String() + `","requestToken":"` + string(o.token) + `","activityId":"1","commodityId":"` + o.item.String() +
		`","title":"Thing","quantity":1,"price":"99.00","amount":"99.00","state":"` + string(o.state) + `","createdAt":1,"payBy":2,"reason":"` + o.reason + `"}`
}

func newOrderAPI(t testing.TB, orders ...order) *orderAPI {
	w := &orderAPI{orders: orders}
	internal := identity.NewInternal(secret)
	w.Server = httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		if err := internal.Check(r.Method, r.URL.RequestURI(), r.Header.Get, nil, time.Now()); err != nil {
			res.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.answer(res, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *orderAPI) answer(res http.ResponseWriter, r *http.Request) {
	user, list := r.URL.Query().Get("user"), []string{}
	for _, o := range w.orders {
		mine := o.user.String() == user
		if mine && (strings.HasSuffix(r.URL.Path, "/"+string(o.token)) || strings.HasSuffix(r.URL.Path, "/"+o.no.String())) {
			_, _ = res.Write([]byte(o.json()))
			return
		}
		if mine {
			list = append(list, o.json())
		}
	}
	if r.URL.Path != "/internal/orders" {
		res.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = res.Write([]byte(`{"orders":[` + strings.Join(list, ",") + `],"nextCursor":"` + r.URL.Query().Get("limit") + r.URL.Query().Get("before") + `"}`))
}

// askingWorkers lets the edge ask these addresses.
func askingWorkers(urls ...string) func(*setup) {
	return func(s *setup) { s.cfg.Workers = urls }
}
