package notifier

import (
	"slices"
	"sync"
	"time"

	"floodgate/sale"
)

// deliver hands an outcome to every connection of its user, watched or not, and is the only way to one. It may be
// given the same outcome any number of times and in any order, by push and by reading: a connection is told each step
// once and never a step back. It never waits: who does not read is closed.
func (h *hub) deliver(o sale.Outcome, how source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var m *message
	for _, c := range h.users[o.User] {
		answer, fresh := c.tell(&o, how)
		if !answer && !fresh {
			continue // said already, or a step back
		}
		if fresh && !answer && how == reread {
			h.metrics.caughtUp.Inc()
		}
		if m == nil {
			m = outcomeMessage(&o)
			if how == pushed {
				m.at = o.At
			}
		}
		c.send(m)
	}
}

// source is how an outcome came here.
type source int

const (
	pushed   source = iota // Pub/Sub
	snapshot               // read because somebody has just begun to watch
	reread                 // read again because a push may have been missed
)

// hub knows who is connected and what each connection was told. mu guards everything below it and the `said` of every
// connection; it is taken before a connection's own lock.
type hub struct {
	cfg     Config
	metrics *metrics
	wg      sync.WaitGroup // one for each connection's goroutine
	wake    chan struct{}  // something in fresh

	mu       sync.Mutex
	draining bool
	conns    map[*conn]struct{}
	entered  int                 // connections and handshakes, at most cfg.MaxConnections
	users    map[sale.ID][]*conn // at most cfg.MaxPerUser each
	fresh    []sale.Token        // watched, and not yet read since; at most cfg.MaxWatches a connection
}

func newHub(cfg Config, m *metrics) *hub {
	return &hub{cfg: cfg, metrics: m, wake: make(chan struct{}, 1), conns: map[*conn]struct{}{}, users: map[sale.ID][]*conn{}}
}

// enter takes a place for one handshake and its connection; who got one owes an exit.
func (h *hub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining || h.entered >= h.cfg.MaxConnections {
		return false
	}
	h.entered++
	h.wg.Add(1)
	h.metrics.open.Store(int64(h.entered))
	return true
}

func (h *hub) exit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entered--
	h.metrics.open.Store(int64(h.entered))
	h.wg.Done()
}

// admit makes a connection known, so that it is told when we stop.
func (h *hub) admit(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns[c] = struct{}{}
	if h.draining {
		c.close(restarting(h.cfg.RestartSpread))
	}
}

// join gives an authenticated connection its user's outcomes, with `ready` before the first of them.
func (h *hub) join(c *conn, user sale.ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.users[user]) >= h.cfg.MaxPerUser {
		return false
	}
	c.user = user
	c.send(readyMessage(user, now()))
	h.users[user] = append(h.users[user], c)
	return true
}

// leave forgets a connection; it does no harm to one that never joined.
func (h *hub) leave(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
	mine := slices.DeleteFunc(h.users[c.user], func(other *conn) bool { return other == c })
	if h.users[c.user] = mine; len(mine) == 0 {
		delete(h.users, c.user)
	}
}

// watch registers first and asks for the reading afterwards, so an outcome that is published in between reaches the
// connection by push. It refuses where the connection waits for too many already.
func (h *hub) watch(c *conn, t sale.Token) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, known := c.said[t]
	if !known && !c.room() {
		return false
	}
	if !s.awaits {
		s.awaits = true
		h.fresh = append(h.fresh, t)
	}
	c.note(t, s)
	signal(h.wake)
	return true
}

// takeFresh hands out what must be read for the first time.
func (h *hub) takeFresh() []sale.Token {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.fresh
	h.fresh = nil
	return out
}

// giveBack keeps for the next try what could not be read, where somebody still waits for it.
func (h *hub) giveBack(tokens []sale.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range tokens {
		if slices.ContainsFunc(h.owners(t), func(c *conn) bool { return c.said[t].awaits }) {
			h.fresh = append(h.fresh, t)
		}
	}
}

// owners are the connections of the user whom a token names. Called under mu.
func (h *hub) owners(t sale.Token) []*conn {
	claims, _ := t.Peek() // its signature was checked when the watch began
	return h.users[claims.User]
}

// unfinished is every token whose outcome may still change, once each.
func (h *hub) unfinished() []sale.Token {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := map[sale.Token]struct{}{}
	for c := range h.conns {
		for t, s := range c.said {
			if s.step < last {
				seen[t] = struct{}{}
			}
		}
	}
	out := make([]sale.Token, 0, len(seen))
	for t := range seen {
		out = append(out, t)
	}
	return out
}

// missing tells those who have just begun to watch a token that the ledger does not know it: they poll. The watch
// stays, since the token may be announced yet.
func (h *hub) missing(t sale.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.owners(t) {
		if s := c.said[t]; s.awaits {
			s.awaits = false
			c.note(t, s)
			c.send(errorMessage(refusal{Code: sale.NotFound, Token: t}))
		}
	}
}

// dropStuck closes connections that have been writing one frame for too long though their queue is not full.
func (h *hub) dropStuck(patience time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		c.dropIfStuck(patience)
	}
}

// restart tells every connection to come back later and lets nobody in from here.
func (h *hub) restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
	for c := range h.conns {
		c.close(restarting(h.cfg.RestartSpread))
	}
}

// cut ends what did not end by itself.
func (h *hub) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		c.ws.Close()
	}
}

func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default: // it is awake already
	}
}
