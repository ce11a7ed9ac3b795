package model

// worker is one placer with two sources, queue and sweeper, and one token in hand: claim, place, commit or release, ack.
func (t *turn) worker(who int8) {
	s := t.s
	w := s.work[who]
	if w.step == none {
		t.pick(who)
		return
	}
	if s.crashes > 0 {
		s.work[who] = work{}
		s.crashes--
		t.may(step{"dies", who, -1, ""}, s)
	}
	switch w.step {
	case got:
		t.claim(who)
	case sellIt, failIt:
		t.place(who)
	case early:
		t.mark(who, finish)
	case finish:
		t.finish(who)
	case marking:
		t.mark(who, ack)
	case ack:
		s = t.s
		if w.src == 'q' {
			s.queue &^= bit(w.token)
		}
		s.work[who] = work{}
		t.do(step{"ack", who, w.token, ""}, s)
	}
}

func (t *turn) pick(who int8) {
	for token := range t.users {
		s := t.s
		if has(s.queue, token) && !s.work[0].holds(token, 'q') && !s.work[1].holds(token, 'q') {
			s.work[who] = work{step: got, src: 'q', token: token, epoch: -1, born: s.born[token]}
			t.do(step{"consume", who, token, ""}, s)
		}
		s = t.s
		if s.redis.res[token] == occupied && t.proven() && !s.work[0].holds(token, 's') && !s.work[1].holds(token, 's') {
			s.work[who] = work{step: got, src: 's', token: token, epoch: -1, born: s.born[token]}
			t.do(step{"sweep", who, token, ""}, s)
		}
	}
}

func (t *turn) claim(who int8) {
	s := t.s
	w := &s.work[who]
	if !t.proven() { // -5: the worker waits with the message in hand
		if t.grown(Offsets) && !t.on(NeverLater) && w.src == 'q' {
			token := w.token
			s.queue &^= bit(token)
			s.parked |= bit(token)
			s.work[who] = work{}
			t.do(step{"answers RetryLater", who, token, ""}, s)
		}
		return
	}
	verb := "claim"
	switch res := s.redis.res[w.token]; {
	case res == occupied:
		w.step = sellIt
		if t.grown(SkipDrain) {
			s.noted = s.redis.newest
		}
	case res != unknown:
		w.step, verb = ack, "claim finds it settled"
		t.do(step{verb, who, w.token, ""}, s)
		return
	case t.dealtWith(w):
		if w.src == 'q' && w.born == s.born[w.token] {
			s.queue &^= bit(w.token)
		}
		verb = "claim drops what an earlier recovery has dealt with"
		t.do(step{verb, who, w.token, ""}, s.emptyHanded(who))
		return
	case !t.on(Adopt):
		w.step, verb = sellIt, "claim takes an unknown one"
	case s.redis.rem > 0 && t.slotFree(w.token):
		w.step, verb = sellIt, "claim adopts"
		s.take(w.token)
	default:
		w.step, verb = failIt, "claim cannot adopt"
	}
	w.epoch, w.stamp = s.redis.epoch, s.stamps[w.token]
	t.do(step{verb, who, w.token, ""}, s)
}

// dealtWith says whether a recovery in its drain leaves this unknown token out: an earlier drain has waited for it, so
// nobody who was told accepted is behind it. Once live, a unit that is left may go to it.
func (t *turn) dealtWith(w *work) bool {
	return t.grown(Offsets|StoppedEdge) && t.on(AdoptCurrent) && !t.s.live && w.born < t.s.lived && t.s.rows[w.token] == noRow
}

func (s state) emptyHanded(who int8) state {
	s.work[who] = work{}
	return s
}

// place is the transaction: the row if there is none yet, under the epoch that was claimed.
func (t *turn) place(who int8) {
	s := t.s
	w := &s.work[who]
	if t.on(Fence) && w.epoch != s.epoch {
		t.stale(who)
		return
	}
	row := &s.rows[w.token]
	if *row == noRow {
		*row = failed
		if w.step == sellIt && s.sold < s.total && !t.s.ownsOrder(t.Users, w.token) {
			*row = placed
			s.sold++
		}
		if t.grown(Outcomes) && !t.on(MarkWithRow) {
			s.done |= bit(w.token)
		}
	}
	w.step = finish
	if t.grown(Outcomes) {
		w.row = *row
		if !t.on(ClearAfterScript) {
			w.step = early
		}
	}
	t.do(step{"place", who, w.token, string(*row)}, s)
}

// stale is a transaction that changed no row because of the epoch.
func (t *turn) stale(who int8) {
	s := t.s
	w := &s.work[who]
	switch {
	case s.redis.epoch == s.epoch:
		*w = work{step: got, src: w.src, token: w.token, epoch: -1, born: w.born}
		t.do(step{"place finds its epoch behind, claims again", who, w.token, ""}, s)
	case t.grown(Recoveries) && t.on(BehindRecovers) && s.live:
		s.live, s.known = false, false
		t.do(step{"place finds Redis behind, clears the identity", who, w.token, ""}, s)
	}
}

// finish is commit or release in Redis, which also publishes the outcome; refused where the stock is not proven.
func (t *turn) finish(who int8) {
	s := t.s
	w := &s.work[who]
	token, row := w.token, w.row
	if !t.grown(Outcomes) {
		row = s.rows[token]
	}
	w.step = ack
	older := row == placed && w.stamp != s.stamps[token] && t.on(SameRecord)
	if t.proven() {
		if !older {
			s.follow(token, row, t.on(Adopt))
		}
		if t.grown(Outcomes) {
			t.publish(&s, token, row)
			if t.on(ClearAfterScript) {
				w.step = marking
			}
		}
	}
	t.do(step{"commit or release", who, token, ""}, s)
}

// publish reaches a buyer whose subscription is up; the script publishes only what the record says.
func (t *turn) publish(s *state, token int8, row byte) {
	res := s.redis.res[token]
	if !has(s.deaf, token) && s.edges[token] == told && (row == placed && res == committed || row != placed && res == released) {
		s.heard[token] = row
	}
}

// mark sets announced, which is also what returned means for a closed row.
func (t *turn) mark(who int8, then byte) {
	s := t.s
	w := &s.work[who]
	t.announced(&s, w.token, w.row)
	w.step = then
	t.do(step{"mark announced", who, w.token, string(w.row)}, s)
}

func (t *turn) announced(s *state, token int8, row byte) {
	if s.rows[token] == row || !t.on(ClearSameRow) {
		s.done |= bit(token)
	}
}
