package model

// outage is what Redis does to us, and what the queue's retry topic does.
func (t *turn) outage() {
	s := t.s
	if s.failures > 0 {
		if s.snap != s.redis {
			s.snap = s.redis
			t.may(step{"snapshot", -1, -1, ""}, s)
		}
		if !t.RestartOnly {
			t.fail("REWIND", t.s.snap)
			lost := ledger{epoch: -1, res: [maxTokens]byte{unknown, unknown, unknown}}
			if t.grown(SkipDrain) {
				lost.newest = -1
			}
			t.fail("LOSS", lost)
		}
		t.fail("RESTART", t.s.redis)
	}
	for token := range t.users {
		if has(t.s.parked, token) {
			s = t.s
			s.parked &^= bit(token)
			s.queue |= bit(token)
			t.do(step{"retry topic delivers", -1, token, ""}, s)
		}
	}
}

// fail leaves a Redis with these data under another identity. A recovery that has not written yet goes on; one that has
// finds another identity and starts over.
func (t *turn) fail(verb string, data ledger) {
	s := t.s
	s.redis = data
	s.live, s.known = false, false
	s.failures--
	if t.on(LiveCheck) {
		for _, r := range []*recovery{&s.recover, &s.zombie} {
			if r.isDraining() {
				*r = recovery{}
			}
		}
	}
	t.may(step{verb, -1, -1, ""}, s)
}
