package model

// closer closes an unpaid order in the database and then gives its unit back in Redis. Where outcomes are modelled it
// also announces again whatever a dead worker left unannounced.
func (t *turn) closer() {
	if t.s.closing.step != none {
		t.giveBack()
		return
	}
	for token := range t.users {
		s := t.s
		if s.rows[token] == placed && s.closes > 0 && (!t.on(Fence) || s.redis.epoch == s.epoch) {
			s.rows[token] = closed
			s.sold--
			s.closes--
			s.closing = t.takeUp(closed, token)
			if t.grown(Outcomes) && t.on(MarkWithRow) {
				s.done &^= bit(token)
			}
			t.may(step{"close", -1, token, ""}, s)
		}
		s = t.s
		unmarked := !has(s.done, token) && (s.rows[token] == closed || t.grown(Outcomes) && s.rows[token] != noRow)
		if t.on(Returned) && unmarked {
			s.closing = t.takeUp(s.rows[token], token)
			t.do(step{"take up again", -1, token, ""}, s)
		}
		if t.grown(Forget) && t.mayForget(token) {
			s.redis.res[token] = unknown
			s.stamps[token]++ // whoever takes a unit for this token again makes another record
			t.do(step{"forget", -1, token, ""}, s)
		}
	}
}

func (t *turn) takeUp(row byte, token int8) closing {
	c := closing{step: got, token: token}
	if t.grown(Outcomes) {
		c.row = row
		if !t.on(ClearAfterScript) {
			c.step = early
		}
	}
	return c
}

func (t *turn) mayForget(token int8) bool {
	s := &t.s
	res := s.redis.res[token]
	settled := res == released || !t.on(ForgetReleased) && res == committed
	return settled && t.proven() && s.rows[token] != noRow && has(s.done, token)
}

func (t *turn) giveBack() {
	s := t.s
	c := &s.closing
	token := c.token
	switch {
	case !t.grown(Outcomes):
		if t.proven() { // the mark that it was returned is set under the epoch it was returned in
			s.follow(token, closed, true)
			s.done |= bit(token)
		}
		s.closing = closing{}
		t.do(step{"release closed", -1, token, ""}, s)
	case c.step == early:
		t.announced(&s, token, c.row)
		c.step = got
		t.do(step{"mark announced", -1, token, string(c.row)}, s)
	case c.step == got && t.proven():
		s.follow(token, c.row, true)
		t.publish(&s, token, c.row)
		c.step = marking
		if !t.on(ClearAfterScript) {
			s.closing = closing{}
		}
		t.do(step{"announce", -1, token, string(c.row)}, s)
	case c.step == got:
		s.closing = closing{}
		t.do(step{"announce is refused", -1, token, ""}, s)
	case c.step == marking:
		t.announced(&s, token, c.row)
		s.closing = closing{}
		t.do(step{"mark announced", -1, token, string(c.row)}, s)
	}
	if t.s.crashes > 0 {
		s = t.s
		s.closing = closing{}
		s.crashes--
		t.may(step{"closer dies", -1, -1, ""}, s)
	}
}
