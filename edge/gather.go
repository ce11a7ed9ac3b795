package edge

import "sync"

// gather is a group commit without a goroutine of its own: calls that wait at the same moment leave together in one
// batch, and the first of a batch is woken to do its work. A lone call leaves at once, in its own goroutine. When a batch
// lands, whoever has gathered meanwhile leaves next. More in flight gather less, so most is small.
type gather struct {
	most  int // batches in flight
	batch int // calls a batch
	room  int // calls waiting; beyond it they are refused, since they would wait longer than a buyer does
	run   func(batch []*call)

	mu      sync.Mutex // guards what follows
	waiting []*call
	flying  int
}

// add takes calls along, all or none; false says that there is no room. Each call added is answered in the end through
// its wake channel.
func (g *gather) add(calls ...*call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting)+len(calls) > g.room {
		return false
	}
	g.waiting = append(g.waiting, calls...)
	g.depart()
	return true
}

// landed says that a batch is back. It is called before the batch's own calls are answered: the next one is on its way
// while they are.
func (g *gather) landed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying--
	g.depart()
}

// depart sends off what may fly; mu is held. Waking never blocks: a call that waits has nothing in its channel.
func (g *gather) depart() {
	for g.flying < g.most && len(g.waiting) > 0 {
		n := min(len(g.waiting), g.batch)
		batch := append(make([]*call, 0, n), g.waiting[:n]...)
		g.waiting = g.waiting[:copy(g.waiting, g.waiting[n:])]
		g.flying++
		batch[0].wake <- func() { g.run(batch) }
	}
}

// load is how many wait and how many batches fly, for the metrics.
func (g *gather) load() (waiting, flying int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting), g.flying
}
