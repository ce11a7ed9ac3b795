package model

// edge is the way of one buyer's click: reserve, enqueue, say accepted. Each token has an edge of its own.
func (t *turn) edge(token int8) {
	s := t.s
	switch s.edges[token] {
	case idle:
		if s.live && s.redis.res[token] == unknown && s.redis.rem > 0 && t.slotFree(token) {
			t.may(step{"reserve", -1, token, ""}, t.reserved(token))
		}
	case reserved:
		t.enqueue(token)
	case stopped:
		t.wake(token)
	case asking:
		t.askAgain(token)
	case told:
		if t.grown(SkipDrain) {
			s.edges[token] = toldDead
			t.may(step{"edge dies after it said accepted", -1, token, ""}, s)
		}
	}
}

func (t *turn) reserved(token int8) state {
	s := t.s
	s.take(token)
	s.edges[token] = reserved
	t.bear(&s, token)
	if t.grown(SkipDrain) { // ids come from Redis' clock, so no id is given twice, whatever is lost
		s.redis.newest = s.newestHeard(false) + 1
		s.ids[token] = s.redis.newest
	}
	return s
}

// enqueue ends in accepted also where the queue refuses: the reservation is the outbox.
func (t *turn) enqueue(token int8) {
	s := t.s
	s.edges[token] = told
	if s.failures == t.Failures || t.QueueFails {
		n := s
		if !t.QueueFails {
			n.failures = 0
		}
		t.may(step{"queue refuses, told accepted", -1, token, ""}, n)
	}
	s.queue |= bit(token)
	t.do(step{"enqueue, told accepted", -1, token, ""}, s)
	s = t.s
	s.edges[token] = dead
	t.may(step{"edge dies", -1, token, ""}, s)
	if t.grown(StoppedEdge) {
		s.edges[token] = stopped
		t.may(step{"edge is stopped", -1, token, ""}, s)
	}
}

func (t *turn) wake(token int8) {
	s := t.s
	s.queue |= bit(token)
	s.edges[token] = told
	verb := "edge wakes, enqueue, told accepted"
	if t.on(AskAgain) {
		s.edges[token] = asking
		verb = "edge wakes, enqueue"
	}
	t.do(step{verb, -1, token, ""}, s)
}

// askAgain is reserve with the same token: the same answer where it is known, a new unit where it was lost.
func (t *turn) askAgain(token int8) {
	s := t.s
	res := s.redis.res[token]
	switch {
	case s.live && (res == occupied || res == committed):
		s.edges[token] = told
		t.bear(&s, token)
		t.do(step{"reserve again, told accepted", -1, token, ""}, s)
	case s.live && res == unknown && s.redis.rem > 0 && t.slotFree(token):
		s.take(token)
		s.edges[token] = told
		t.bear(&s, token)
		t.do(step{"reserve again takes a unit, told accepted", -1, token, ""}, s)
	default:
		s.edges[token] = refused
		t.do(step{"reserve again, told busy or sold out", -1, token, ""}, s)
	}
}

// bear dates the token's message; an edge that asked again under a newer epoch enqueues again.
func (t *turn) bear(s *state, token int8) {
	if !t.grown(Offsets | StoppedEdge) {
		return
	}
	if s.edges[token] == told && s.born[token] != s.redis.epoch {
		s.queue |= bit(token)
	}
	s.born[token] = s.redis.epoch
}

// buyer is the other end: it may miss what is published, reads again, and may repeat its token.
func (t *turn) buyer(token int8) {
	if t.grown(Outcomes) {
		t.hear(token)
	}
	if t.grown(Forget) {
		t.repeat(token)
	}
}

func (t *turn) hear(token int8) {
	s := t.s
	if !has(s.deaf, token) && s.deaf == 0 && s.edges[token] == told {
		s.deaf |= bit(token)
		t.may(step{"subscription goes down", -1, token, ""}, s)
	}
	s = t.s
	if !t.on(ReadAgain) || s.edges[token] != told || !t.proven() {
		return
	}
	outcome := unknown
	switch s.redis.res[token] {
	case committed:
		outcome = placed
	case released, unknown: // a released record holds its outcome; without a record the row is asked
		outcome = s.rows[token]
	}
	if outcome != unknown && s.heard[token] != outcome {
		s.heard[token] = outcome
		t.do(step{"buyer reads again", -1, token, string(outcome)}, s)
	}
}

// repeat is a buyer who comes again with a token whose record is gone, because it was lost or forgotten.
func (t *turn) repeat(token int8) {
	s := t.s
	if e := s.edges[token]; (e == told || e == dead || e == refused) && s.repeats > 0 && s.live &&
		s.redis.res[token] == unknown && s.redis.rem > 0 && t.slotFree(token) {
		s.take(token)
		s.edges[token] = reserved
		s.repeats--
		t.may(step{"reserve repeated", -1, token, ""}, s)
	}
}
