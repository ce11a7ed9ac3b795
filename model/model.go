// Package model checks the ledger protocol itself: reserve, enqueue, claim, place, commit, release, close and recover in
// every interleaving of edges, queue, workers, sweeper, closer and recoverers, with deaths at any step and a Redis that
// restarts, rewinds to a snapshot or loses everything, also in the middle of a recovery. It knows no Redis, queue or
// database, only what each would hold, for a sale small enough to walk through completely.
//
// Who changes the protocol changes this package first. A world (see worlds_test.go) says how many tokens, workers and
// failures there are, which features are modelled, and which rules are off. With all rules on, no promise may break; with
// a rule off, the test expects the shortest sequence that breaks one, so a rule that nothing needs is noticed too.
//
// The promises at any time: sold never exceeds the total, sold_count equals the rows, no user is over the limit, no
// remaining below zero. At rest (nothing left to happen but chance): Redis is live, remaining + occupied + sold equals
// the total, and whoever was told accepted has one outcome, which is not "failed", and has heard it.
//
// model.go holds the story of one turn; edge.go, worker.go, closer.go, lots.go, outage.go and recover.go the actions;
// promise.go the promises; topic.go a smaller protocol of its own, two activities on one topic; search.go the walk.
package model

import "slices"

// World is one small sale to walk through. The zero value of each field is the smaller world.
type World struct {
	Name        string
	Users       []int // the user of each request token, at most 3
	Total       int8  // units at the start
	Workers     int8  // 1 or 2
	Crashes     int8  // deaths of a worker, closer or recoverer
	Failures    int8  // of Redis
	Closes      int8  // orders that are not paid in time
	RestartOnly bool  // Redis keeps its data
	QueueFails  bool  // the queue may refuse although Redis may still fail: a double fault
	Grown       Feature
	Without     Rule
}

// turn collects what can happen next in one state.
type turn struct {
	*World
	s     state
	out   []successor[state]
	users int8
}

// Check walks the whole world. It may be called concurrently; a big world takes about 250 bytes a state.
func (w World) Check() Result { return w.checkUpTo(maxStates) }

func (w World) checkUpTo(most int) Result {
	return search(protocol[state]{start: w.start(), next: w.next, promise: w.promise}, most)
}

func (w *World) start() state {
	fresh := func() (a [maxTokens]byte) {
		for t := range a {
			a[t] = unknown
		}
		return a
	}
	s := state{live: true, known: w.grown(Recoveries), total: w.Total, rows: fresh(), heard: fresh()}
	s.redis = ledger{rem: w.Total, res: fresh()}
	s.snap = s.redis
	for t := range w.Users {
		s.edges[t] = idle
	}
	s.crashes, s.failures, s.closes, s.reconciles, s.stops, s.repeats = w.Crashes, w.Failures, w.Closes, 1, 1, 1
	return s
}

// next is the story: everything that anybody could do now.
func (w *World) next(s state, out []successor[state]) []successor[state] {
	t := &turn{World: w, s: s, out: out, users: int8(len(w.Users))}
	for token := range t.users {
		t.edge(token)
		t.buyer(token)
	}
	for who := range w.Workers {
		t.worker(who)
	}
	t.closer()
	t.addLot()
	t.outage()
	t.recovery()
	return t.out
}

func (w *World) on(r Rule) bool       { return w.Without&r == 0 }
func (w *World) grown(f Feature) bool { return w.Grown&f != 0 }

// do is something that somebody is obliged to do; may is chance.
func (t *turn) do(verb step, to state)  { t.out = append(t.out, successor[state]{verb, false, to}) }
func (t *turn) may(verb step, to state) { t.out = append(t.out, successor[state]{verb, true, to}) }

// proven says whether scripts that move stock accept this Redis; reserve also asks that it is live.
func (t *turn) proven() bool {
	if !t.on(ClaimCheck) {
		return true
	}
	if t.grown(Recoveries) {
		return t.s.known
	}
	return t.s.live || t.s.recover.isDraining()
}

// slotFree says whether the token's user holds nothing else in Redis.
func (t *turn) slotFree(token int8) bool {
	for k := range t.users {
		if k != token && t.Users[k] == t.Users[token] && (t.s.redis.res[k] == occupied || t.s.redis.res[k] == committed) {
			return false
		}
	}
	return true
}

// ownsOrder says whether the token's user has a live order in the database.
func (s *state) ownsOrder(users []int, token int8) bool {
	for k := range users {
		if users[k] == users[token] && s.rows[k] == placed {
			return true
		}
	}
	return false
}

// take moves a unit from remaining to the token, as reserve and adopt do.
func (s *state) take(token int8) {
	s.redis.rem--
	s.redis.res[token] = occupied
}

// follow brings Redis to what the row says: commit and release in one, safe to run twice.
func (s *state) follow(token int8, row byte, adopted bool) {
	r := &s.redis
	switch res := r.res[token]; {
	case row == placed && res == occupied:
		r.res[token] = committed
	case row == placed && res == unknown && !adopted: // a rule is off; else only before a rebuild, which reads the row
		r.res[token] = committed
	case (row == failed || row == closed) && (res == occupied || res == committed):
		r.res[token] = released
		r.rem++
	case (row == failed || row == closed) && res == unknown:
		r.res[token] = released
	}
}

func count(a [maxTokens]byte, what byte) (n int8) {
	for _, b := range a {
		if b == what {
			n++
		}
	}
	return n
}

// newestHeard is the newest ledger id that an edge heard; alive counts only edges that can still be asked.
func (s *state) newestHeard(alive bool) int8 {
	ids := s.ids
	for t, e := range s.edges {
		if alive && (e == dead || e == toldDead || e == stopped) {
			ids[t] = 0
		}
	}
	return slices.Max(ids[:])
}
