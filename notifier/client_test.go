package notifier

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"floodgate/sale"
)

// client is one WebSocket.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

type header map[string]string

func (s *shop) try(h header) (*websocket.Conn, *http.Response, error) {
	dialer := websocket.Dialer{HandshakeTimeout: patience, Subprotocols: []string{Subprotocol}}
	all := http.Header{}
	for k, v := range h {
		all.Set(k, v)
	}
	return dialer.DialContext(s.t.Context(), "ws://"+s.n.deps.Listener.Addr().String()+"/ws", all)
}

func (s *shop) dial(h header) *client {
	s.t.Helper()
	ws, _, err := s.try(h)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { ws.Close() })
	return &client{s.t, ws}
}

// login opens a connection of the user.
func (s *shop) login(user sale.ID) *client {
	s.t.Helper()
	c := s.dial(nil)
	c.say(`{"type":"auth","token":"` + s.jwt(user) + `"}`)
	c.hears(`{"type":"ready","userId":"`+user.String()+`"}`, "now")
	return c
}

func (c *client) say(text string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) watch(t sale.Token) {
	c.t.Helper()
	c.say(`{"type":"watch","requestToken":"` + string(t) + `"}`)
}

func (c *client) subscribe(a sale.ID) {
	c.t.Helper()
	c.say(`{"type":"subscribe","activityId":"` + a.String() + `"}`)
}

// hears waits for the next message, which must be want; fields named in times are compared as present only.
func (c *client) hears(want string, times ...string) {
	c.t.Helper()
	_ = c.ws.SetReadDeadline(time.Now().Add(patience))
	_, got, err := c.ws.ReadMessage()
	if err != nil {
		c.t.Fatalf("got %v, want %s", err, want)
	}
	var g, w map[string]any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		c.t.Fatalf("%s: %v", got, err)
	}
	for _, name := range times {
		if v, ok := g[name].(float64); !ok || v < 1.7e12 {
			c.t.Fatalf("%s: no time in %q", got, name)
		}
		delete(g, name)
	}
	a, _ := json.Marshal(g)
	b, _ := json.Marshal(w)
	if !slices.Equal(a, b) {
		c.t.Fatalf("got %s, want %s", a, b)
	}
}

// hearsOutcome waits for an outcome as it goes over the wire.
func (c *client) hearsOutcome(o sale.Outcome) {
	c.t.Helper()
	c.hears(string(outcomeMessage(&o).data))
}

// closed waits for the close frame, over messages that were on their way.
func (c *client) closed(code int) string {
	c.t.Helper()
	_ = c.ws.SetReadDeadline(time.Now().Add(patience))
	for {
		_, _, err := c.ws.ReadMessage()
		if err == nil {
			continue
		}
		end, ok := err.(*websocket.CloseError)
		if !ok || end.Code != code {
			c.t.Fatalf("got %v, want close code %d", err, code)
		}
		return end.Text
	}
}

// silent is certain that nothing was sent before what is asked for now: answers keep their order.
func (c *client) silent(s *shop, user sale.ID) {
	c.t.Helper()
	c.say(`{"type":"auth","token":"` + s.jwt(user) + `"}`)
	c.hears(`{"type":"ready","userId":"`+user.String()+`"}`, "now")
}
