package model

// addLot is an operator's one more unit: a row and the total in one transaction, then restock in Redis, then the mark.
func (t *turn) addLot() {
	if !t.grown(AddLot) {
		return
	}
	s := t.s
	switch s.lot {
	case none:
		s.total++
		s.lot, s.lotEpoch = got, s.epoch
		t.do(step{"add lot: row and total", -1, -1, ""}, s)
	case got:
		t.restock()
	case marking:
		s.applied = true
		s.lot = ack
		t.do(step{"add lot: mark applied", -1, -1, ""}, s)
	}
	if s = t.s; s.crashes > 0 && (s.lot == got || s.lot == marking) {
		s.crashes--
		t.readLot(&s)
		t.may(step{"add lot: dies, taken up again from its row", -1, -1, ""}, s)
	}
}

// restock is relative and runs once for an operation id in one Redis.
func (t *turn) restock() {
	s := t.s
	if !t.proven() {
		return
	}
	if s.redis.epoch != s.lotEpoch && t.on(LotEpoch) {
		if s.applied || s.lotEpoch != s.epoch {
			t.readLot(&s)
			t.do(step{"restock is refused, row read again", -1, -1, ""}, s)
		}
		return
	}
	if !s.redis.lot {
		s.redis.lot = true
		s.redis.rem++
	}
	s.lot = marking
	t.do(step{"restock", -1, -1, ""}, s)
}

func (t *turn) readLot(s *state) {
	s.lot, s.lotEpoch = got, s.epoch
	if s.applied {
		s.lot = ack
	}
}
