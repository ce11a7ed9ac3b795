package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"floodgate/sale"
)

const (
	activityID = "9007199254740995" // beyond what JavaScript's numbers hold, as every id here
	orderNo    = "7301234567890123457"
	userID     = "9223372036854775807"
	policy     = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self' ws: wss:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

type object = map[string]any

// shop is the contract as a page sees it, with a script of what the order call answers next: a refusal's code, "accept",
// "cut" (the line breaks before anything happened) or "take_and_cut" (the order is taken, the answer lost).
type shop struct {
	url string

	mu       sync.Mutex
	startsAt time.Time
	status   string
	items    []object
	script   []string
	hits     []string
	tokens   map[string]object // request token -> what a poll says
	posts    []string          // the request tokens of the order calls
	orders   []object
	sockets  map[*websocket.Conn]bool
	noSocket bool
	instant  bool // an accepted request is an order at once

	unplanned bool // the list is empty
}

func newShop(t *testing.T, opensIn time.Duration) *shop {
	s := &shop{startsAt: time.Now().Add(opensIn), status: "live", tokens: map[string]object{}, sockets: map[*websocket.Conn]bool{}}
	for i, title := range []string{"Aurora wireless headphones 无线耳机", "Kettle 1.5 L 电热水壶", "Canvas bag 帆布包"} {
		s.items = append(s.items, object{"commodityId": fmt.Sprint(9007199254740993 + i), "title": title,
			"price": []string{"899.00", "129.00", "19.99"}[i], "total": 100, "remaining": []int{100, 13, 0}[i], "soldOut": i == 2})
	}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	s.url = server.URL
	t.Cleanup(func() { s.cutSockets(); server.Close() })
	return s
}

func (s *shop) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	s.mu.Lock()
	if strings.HasPrefix(path, "/api/") || path == "/ws" {
		s.hits = append(s.hits, r.Method+" "+path)
	}
	s.mu.Unlock()
	switch {
	case path == "/ws":
		s.socket(w, r)
	case strings.HasPrefix(path, "/api/"):
		s.api(w, r)
	default:
		s.page(w, path)
	}
}

func (s *shop) page(w http.ResponseWriter, path string) {
	if path == "/" {
		path = "/index.html"
	} else if strings.HasPrefix(path, "/a/") {
		path = "/activity.html"
	}
	for _, f := range Files() {
		if f.Path == path {
			w.Header().Set("Content-Type", f.ContentType)
			w.Header().Set("Content-Security-Policy", policy)
			socket := "ws" + strings.TrimPrefix(s.url, "http") + "/ws"
			fmt.Fprint(w, strings.NewReplacer("{{socket}}", socket, "{{demo}}", "true").Replace(string(f.Body)))
			return
		}
	}
	http.NotFound(w, nil)
}

func (s *shop) api(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
	var body object
	json.NewDecoder(r.Body).Decode(&body)
	switch kind := r.Method + " " + parts[0] + " " + parts[len(parts)-1]; {
	case parts[0] == "time":
		answer(w, 200, object{"now": time.Now().UnixMilli()})
	case parts[0] == "demo":
		answer(w, 200, object{"token": "jwt", "userId": userID})
	case r.URL.Path == "/api/activities":
		sales := []object{s.activity()}
		if s.unplanned {
			sales = sales[:0]
		}
		answer(w, 200, object{"now": time.Now().UnixMilli(), "activities": sales})
	case kind == "GET activities "+activityID:
		answer(w, 200, s.activity())
	case r.Header.Get("Authorization") != "Bearer jwt":
		refuse(w, "unauthorized", nil)
	case parts[len(parts)-1] == "token":
		answer(w, 200, object{"requestToken": fmt.Sprintf("token-%d", len(s.hits)), "expiresAt": time.Now().Add(time.Hour).UnixMilli()})
	case r.Method == "POST" && parts[0] == "activities":
		s.order(w, body["requestToken"].(string), parts[3])
	case parts[0] == "requests":
		if o := s.tokens[parts[1]]; o != nil {
			answer(w, 200, o)
			return
		}
		refuse(w, "not_found", nil)
	case parts[0] == "orders" && len(parts) == 1:
		answer(w, 200, object{"orders": s.orders})
	case parts[0] == "orders":
		if i := slices.IndexFunc(s.orders, func(o object) bool { return o["orderNo"] == parts[1] }); i >= 0 {
			answer(w, 200, s.orders[i])
			return
		}
		refuse(w, "not_found", nil)
	default:
		refuse(w, "not_found", nil)
	}
}

func (s *shop) activity() object {
	return object{"id": activityID, "title": "Midnight sale 零点抢购", "startsAt": s.startsAt.UnixMilli(), "status": s.status, "captcha": false,
		"endsAt": s.startsAt.Add(time.Hour).UnixMilli(), "now": time.Now().UnixMilli(), "perUserLimit": 1, "items": s.items}
}

func (s *shop) order(w http.ResponseWriter, token, commodity string) {
	s.posts = append(s.posts, token)
	next := "accept"
	if len(s.script) > 0 {
		next, s.script = s.script[0], s.script[1:]
	}
	switch next {
	case "accept", "take_and_cut":
		if s.tokens[token] != nil { // again: the same answer, nothing taken
			answer(w, 202, object{"outcome": "accepted", "requestToken": token, "statusUrl": "/api/requests/" + token})
			return
		}
		s.tokens[token] = object{"requestToken": token, "state": "occupied", "outcome": "accepted", "commodity": commodity}
		if s.instant {
			s.place(token)
		}
		if next == "accept" {
			answer(w, 202, object{"outcome": "accepted", "requestToken": token, "statusUrl": "/api/requests/" + token})
			return
		}
		fallthrough
	case "cut":
		panic(http.ErrAbortHandler)
	case "duplicate":
		s.tokens["earlier"] = object{"requestToken": "earlier", "outcome": "accepted", "commodity": commodity}
		s.place("earlier")
		refuse(w, next, object{"requestToken": "earlier", "orderNo": orderNo})
	default:
		refuse(w, next, nil)
	}
}

// place makes an accepted request an order and pushes the outcome. The lock is held.
func (s *shop) place(token string) {
	o := s.tokens[token]
	payBy := time.Now().Add(15 * time.Minute).UnixMilli()
	s.orders = append(s.orders, object{"orderNo": orderNo, "requestToken": token, "activityId": activityID, "commodityId": o["commodity"],
		"title": s.items[0]["title"], "quantity": 1, "price": "899.00", "amount": "899.00", "state": "pending_payment",
		"createdAt": time.Now().UnixMilli(), "payBy": payBy})
	s.settle(token, object{"outcome": "pending_payment", "orderNo": orderNo, "payBy": payBy})
}

func (s *shop) settle(token string, news object) {
	for k, v := range news {
		s.tokens[token][k] = v
	}
	push := object{"type": "outcome", "requestToken": token, "at": time.Now().UnixMilli()}
	for k, v := range news {
		push[k] = v
	}
	for c := range s.sockets {
		c.WriteJSON(push)
	}
}

// socket serves one connection; all writes happen under the lock, so that there is one writer.
func (s *shop) socket(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	closed := s.noSocket
	s.mu.Unlock()
	if closed {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	up := websocket.Upgrader{Subprotocols: []string{"floodgate.v1"}}
	c, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { s.mu.Lock(); delete(s.sockets, c); s.mu.Unlock(); c.Close() }()
	for {
		var m map[string]string
		if c.ReadJSON(&m) != nil {
			return
		}
		s.mu.Lock()
		switch m["type"] {
		case "auth":
			s.sockets[c] = true
			c.WriteJSON(object{"type": "ready", "now": time.Now().UnixMilli(), "userId": userID})
		case "subscribe":
			c.WriteJSON(object{"type": "stock", "activityId": activityID, "items": s.items, "at": time.Now().UnixMilli()})
		case "watch":
			if o := s.tokens[m["requestToken"]]; o != nil {
				c.WriteJSON(object{"type": "outcome", "requestToken": m["requestToken"], "outcome": o["outcome"], "orderNo": o["orderNo"]})
			}
		}
		s.mu.Unlock()
	}
}

func (s *shop) cutSockets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noSocket = true
	for c := range s.sockets {
		c.Close()
	}
}

func answer(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code string, extra object) {
	v := sale.Code(code).Verdict()
	e := object{"code": code, "message": v.Message, "retryAfterMs": 0}
	if v.Retry {
		e["retryAfterMs"] = 100
		w.Header().Set("Retry-After", "1")
	}
	for k, x := range extra {
		e[k] = x
	}
	answer(w, v.HTTP, object{"error": e, "requestId": "r"})
}
