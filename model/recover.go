package model

import "slices"

// recovery is one worker under a lease, and perhaps one that was stopped, lost its lease and has woken.
func (t *turn) recovery() {
	s := t.s
	if s.live && s.recover.step == none && t.grown(Reconcile) && s.reconciles > 0 {
		s.reconciles--
		t.begin(s, true)
	}
	s = t.s
	if s.recover.step != none && s.crashes > 0 {
		s.recover = recovery{}
		s.crashes--
		t.may(step{"recover: dies", -1, -1, ""}, s)
	}
	s = t.s
	if s.recover.step != none && t.grown(Zombie) && s.stops > 0 {
		s.zombie, s.recover = s.recover, recovery{}
		s.stops--
		t.may(step{"recover: stopped, its lease passes on", -1, -1, ""}, s)
	}
	if s = t.s; s.recover.step != none {
		t.advance("recover", func(s *state) *recovery { return &s.recover })
	} else if !s.live || s.redis.epoch < s.epoch && t.grown(Recoveries) && t.on(BehindRecovers) && t.on(AnybodyNotices) {
		t.begin(s, false)
	}
	if t.s.zombie.step != none {
		t.advance("stopped recover", func(s *state) *recovery { return &s.zombie })
	}
}

// begin is step 0 and 1: no script accepts this Redis any more, and no transaction of the old epoch commits.
func (t *turn) begin(s state, byOperator bool) {
	verb := "recover: raise the epoch"
	if t.grown(Recoveries) && t.on(ClearIdentity) {
		verb = "recover: clear the identity"
		s.live, s.known = false, false
		s.recover = recovery{step: cleared}
	} else {
		s.epoch++
		s.recover = recovery{step: reading, epoch: s.epoch}
	}
	if byOperator {
		t.may(step{"reconcile, " + verb, -1, -1, ""}, s)
		return
	}
	t.do(step{verb, -1, -1, ""}, s)
}

// advance is the next step of a recovery; slot says whose.
func (t *turn) advance(who string, slot func(*state) *recovery) {
	s := t.s
	r := slot(&s)
	verb := ""
	switch r.step {
	case cleared:
		s.epoch++
		*r = recovery{step: reading, epoch: s.epoch}
		verb = "raise the epoch"
	case reading:
		verb = "read the rows"
		if r.epoch == s.epoch || !t.on(ReadUnderEpoch) {
			t.read(&s, r)
		} else {
			*r = recovery{}
			verb = "gives up, the database has moved on"
		}
	case writing:
		verb = "write Redis"
		if !t.grown(Zombie) || !t.on(OnlyNewerWrites) {
			t.rebuild(&s, r)
		} else if r.epoch == s.epoch {
			r.step = checked
			verb = "the database's epoch is still mine"
		} else {
			*r = recovery{}
			verb = "gives up, the database has moved on"
		}
	case checked:
		verb = "write Redis"
		if r.epoch > s.redis.epoch {
			t.rebuild(&s, r)
		} else {
			*r = recovery{}
			verb = "write is refused, Redis is newer"
		}
	case draining, emptying:
		t.drain(who, slot)
		return
	case recording:
		verb = t.goLive(&s, r)
	}
	t.do(step{who + ": " + verb, -1, -1, ""}, s)
}

func (t *turn) read(s *state, r *recovery) {
	r.step, r.sold, r.rows = writing, s.sold, s.rows
	if t.grown(Paged) {
		r.res, r.found = s.redis.res, s.redis.epoch
	}
	if t.grown(AddLot) {
		r.total, r.lot = s.total, s.lot != none
		s.applied = r.lot
	}
}

// rebuild is step 3, one script: records from the rows, occupied ones without a row kept.
func (t *turn) rebuild(s *state, r *recovery) {
	before, found, total := s.redis.res, s.redis.epoch, s.total
	if t.grown(Paged) {
		before, found = r.res, r.found
	}
	if t.grown(AddLot) {
		total = r.total
		if t.on(LotWritten) {
			s.redis.lot = r.lot
		}
	}
	// A Redis older than the last recovery holds reservations that the recovery has already dealt with.
	keep := found >= s.lived || !t.on(DropStale)
	res := &s.redis.res
	for k := range t.users {
		switch {
		case r.rows[k] == placed:
			res[k] = committed
		case r.rows[k] != noRow:
			res[k] = released
		case before[k] == occupied && keep:
			res[k] = occupied
		default:
			res[k] = unknown
		}
	}
	s.redis.rem = total - r.sold - count(*res, occupied)
	for k := int8(maxTokens - 1); s.redis.rem < 0; k-- { // a unit that is not there cannot be held
		if res[k] == occupied {
			res[k] = unknown
			s.redis.rem++
		}
	}
	if t.grown(SkipDrain) && found < s.lived && t.on(DropForgetsIDs) {
		s.redis.newest = -1
	}
	s.redis.epoch = r.epoch
	s.live, s.known = false, t.grown(Recoveries)
	*r = recovery{step: draining, epoch: r.epoch}
	if t.grown(Offsets) && !t.on(EndAfterGrace) {
		r.step, r.mark = emptying, s.queue
	}
	if !t.on(Drain) {
		s.live, s.lived = true, r.epoch
		*r = recovery{}
	}
}

// drain is step 4: G has passed, and what was in the queue is placed.
func (t *turn) drain(who string, slot func(*state) *recovery) {
	s := t.s
	r := slot(&s)
	if t.grown(SkipDrain) && t.lostNothing() {
		dealtWith := r.epoch
		if t.on(SkipLeavesMark) {
			dealtWith = s.lived
		}
		t.drained(who+": newest ledger id is here, skip the drain", dealtWith, slot)
	}
	if r.epoch != s.epoch && t.on(DrainUnderEpoch) {
		*r = recovery{}
		t.do(step{who + ": gives up its drain, the database has moved on", -1, -1, ""}, s)
		return
	}
	if slices.Contains(s.edges[:], reserved) { // an edge that is younger than G
		return
	}
	switch {
	case !t.grown(Offsets):
		if s.queue == 0 && s.work[0].step == none && s.work[1].step == none {
			t.drained(who+": drained", r.epoch, slot)
		}
	case r.step == draining:
		if s.parked == 0 || !t.on(RetryEmpty) {
			r.step, r.mark = emptying, s.queue
			t.do(step{who + ": read the queue's end", -1, -1, ""}, s)
		}
	case t.allPlaced(r.mark) && (s.parked == 0 || !t.on(RetryEmpty)):
		t.drained(who+": drained", r.epoch, slot)
	}
}

// allPlaced says whether every message below the end is placed, as far as the recorded offsets say.
func (t *turn) allPlaced(mark byte) bool {
	for token := range t.users {
		open := has(mark&t.s.queue, token)
		if open && !t.on(PlacedOffsets) { // the consumer's own offset moves as it hands out
			open = !t.s.work[0].holds(token, 'q') && !t.s.work[1].holds(token, 'q')
		}
		if open {
			return false
		}
	}
	return true
}

// lostNothing says whether the newest ledger id that was ever handed out is in this Redis, as far as can be asked.
func (t *turn) lostNothing() bool {
	s := &t.s
	if !t.on(NewestPresent) {
		return s.redis.newest >= s.noted
	}
	for _, silent := range []byte{dead, toldDead, stopped} {
		if slices.Contains(s.edges[:], silent) && t.on(EveryEdgeAnswers) {
			return false
		}
	}
	return s.redis.newest >= max(s.newestHeard(true), s.noted)
}

// drained is step 5: the database records which epoch went live and was dealt with, then the script looks at the identity once more.
func (t *turn) drained(verb string, dealtWith int8, slot func(*state) *recovery) {
	s := t.s
	r := slot(&s)
	switch {
	case !t.grown(Recoveries):
		s.live, s.lived = true, dealtWith
		*r = recovery{}
	case r.epoch != s.epoch && t.on(OnlyNewerWrites):
		*r = recovery{}
		verb += ", gives up, the database has moved on"
	default:
		s.lived = dealtWith
		r.step, r.mark = recording, 0
		verb += ", epoch recorded as live"
	}
	t.do(step{verb, -1, -1, ""}, s)
}

func (t *turn) goLive(s *state, r *recovery) string {
	mine := s.redis.epoch == r.epoch || !t.on(OnlyNewerWrites)
	known := s.known || !t.on(LiveCheck)
	*r = recovery{}
	if !mine || !known {
		return "live is refused"
	}
	s.live, s.known = true, true
	return "live"
}
