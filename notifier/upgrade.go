package notifier

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"floodgate/sale"
)

// Subprotocol is the only version of the contract so far.
const Subprotocol = "floodgate.v1"

const cookieName = "fg_session"

// upgrader allocates no more than a quiet connection needs: the library's defaults cost 8 KiB and more each. Frames
// longer than the buffer leave in several writes.
var upgrader = websocket.Upgrader{
	HandshakeTimeout: 5 * time.Second,
	ReadBufferSize:   512,
	WriteBufferSize:  512,
	WriteBufferPool:  &sync.Pool{},
	Subprotocols:     []string{Subprotocol},
	CheckOrigin:      func(*http.Request) bool { return true }, // upgrade judges it: a page can only see a close code
}

// upgrade turns a request into a connection. It hands it to a fresh goroutine: this one's stack has grown while it
// parsed HTTP, and would stay so.
func (n *Notifier) upgrade(ctx context.Context) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if offered := websocket.Subprotocols(r); len(offered) > 0 && !slices.Contains(offered, Subprotocol) {
			n.metrics.refused.WithLabelValues("subprotocol").Inc()
			http.Error(w, "want subprotocol "+Subprotocol, http.StatusBadRequest)
			return
		}
		if !n.hub.enter() {
			n.metrics.refused.WithLabelValues("full").Inc()
			w.Header().Set("Retry-After", "5")
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil { // answered by the library
			n.metrics.refused.WithLabelValues("handshake").Inc()
			n.hub.exit()
			return
		}
		c := newConn(n, ws)
		c.setWriteBuffer(sendBuffer)
		user, ok := n.origin(r)
		if !ok {
			c.close(forbiddenOrigin)
		}
		go c.serve(ctx, user)
	}
}

// origin judges where a page comes from, exactly. Who names no origin is no browser and brings a token of its own; the
// cookie counts only behind an allowed origin, since a browser sends it for any page.
func (n *Notifier) origin(r *http.Request) (sale.ID, bool) {
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) == 0:
		return 0, true
	case len(origins) > 1 || !slices.Contains(n.cfg.AllowedOrigins, origins[0]):
		return 0, false
	}
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return 0, true
	}
	u, err := n.deps.Verifier.Verify(cookie.Value)
	if err != nil {
		return 0, true // it may have expired: the page sends auth
	}
	return u.ID, true
}
