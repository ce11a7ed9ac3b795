package notifier

import "floodgate/sale"

// step is how far a request token has come. Outcomes only go forward; a lower step that arrives later is old news.
type step int8

const (
	untold step = iota
	waitlisted
	accepted
	pendingPayment
	last // paid, cancelled, closed, failed, sold_out: nothing follows
)

func stepOf(c sale.Code) step {
	switch c {
	case sale.Waitlisted:
		return waitlisted
	case sale.Accepted:
		return accepted
	case sale.PendingPayment:
		return pendingPayment
	}
	return last
}

// said is what a connection was told about a token, and whether it has asked and was not answered yet.
type said struct {
	step   step
	awaits bool
}

// tell notes an outcome and says whether it must be sent: as the answer to a watch, or because it is a step forward.
// Called under hub.mu, like all of this file.
func (c *conn) tell(o *sale.Outcome, how source) (answer, fresh bool) {
	s, known := c.said[o.Token]
	at := stepOf(o.Outcome)
	if at < s.step {
		if how == snapshot && s.awaits { // Redis is behind what we have said: that stays the answer
			s.awaits = false
			c.note(o.Token, s)
		}
		return false, false
	}
	answer, fresh = s.awaits, at > s.step
	if known || c.room() { // without room it may be told twice, rather than never
		c.note(o.Token, said{step: at})
	}
	return answer, fresh
}

func (c *conn) note(t sale.Token, s said) {
	if c.said == nil {
		c.said = map[sale.Token]said{}
	}
	c.said[t] = s
}

// room makes place for one more token by forgetting a finished one; false where all are unfinished.
func (c *conn) room() bool {
	if len(c.said) < c.hub.cfg.MaxWatches {
		return true
	}
	for t, s := range c.said {
		if s.step == last && !s.awaits {
			delete(c.said, t)
			return true
		}
	}
	return false
}
