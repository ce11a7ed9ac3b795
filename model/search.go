package model

import "hash/maphash"

// maxStates bounds a search: about 250 bytes a state, so a search that would not fit in 1.5 GiB ends with GaveUp instead.
const maxStates = 5_000_000

// step names one action: a verb of the design, who did it (worker or -1), for which token (or -1), and what came of it.
type step struct {
	verb       string
	who, token int8
	note       string
}

func (s step) String() string {
	text := s.verb
	if s.who >= 0 {
		text = "w" + string(rune('0'+s.who)) + " " + text
	}
	if s.token >= 0 {
		text += " " + string(rune('0'+s.token))
	}
	if s.note != "" {
		text += " -> " + s.note
	}
	return text
}

// successor is a state one action away. Chance marks what nobody is obliged to do (deaths, failures, buyers' clicks):
// a state with nothing but chance left is at rest.
type successor[S comparable] struct {
	step   step
	chance bool
	state  S
}

// protocol is what a search walks: the successors of a state (appended to out, which is reused), and the promise that
// a state breaks, "" where none.
type protocol[S comparable] struct {
	start   S
	next    func(state S, out []successor[S]) []successor[S]
	promise func(state S, atRest bool) string
}

// Fault is a broken promise with the shortest sequence that leads to it.
type Fault struct {
	Promise string
	Trace   []string
}

// Result is what a search found. Faulty states are counted, but nothing behind them is walked.
type Result struct {
	States int
	Faults []Fault // the first of each kind, nearest first
	GaveUp bool    // the bound was reached: the absence of faults says nothing
}

// search walks every state breadth first, up to most, so the first fault of a kind has a shortest trace.
func search[S comparable](p protocol[S], most int) Result {
	seen := newSet[S]()
	seen.add(p.start, 0)
	var result Result
	var out []successor[S]
	found := map[string]bool{}
	for at := uint32(0); int(at) < len(seen.parents); at++ {
		if int(at) >= most {
			result.GaveUp = true
			break
		}
		state := seen.state(at)
		out = p.next(state, out[:0])
		if broken := p.promise(state, atRest(out)); broken != "" {
			if !found[broken] {
				found[broken] = true
				result.Faults = append(result.Faults, Fault{broken, seen.trace(at, p)})
			}
			continue
		}
		for i := range out {
			seen.add(out[i].state, at)
		}
	}
	result.States = len(seen.parents)
	return result
}

func atRest[S comparable](out []successor[S]) bool {
	for i := range out {
		if !out[i].chance {
			return false
		}
	}
	return true
}

// set numbers the states in the order in which they were found. States stand in chunks, so growing copies none, and
// the index holds numbers only.
type set[S comparable] struct {
	seed    maphash.Seed
	chunks  [][]S
	parents []uint32
	index   []uint32 // number + 1, open addressing, a power of two long, at most half full
}

const chunk = 1 << 14

func newSet[S comparable]() *set[S] {
	return &set[S]{seed: maphash.MakeSeed(), index: make([]uint32, 1<<12)}
}

func (s *set[S]) state(n uint32) S { return s.chunks[n/chunk][n%chunk] }

// add remembers a state and the number of the state it was first reached from.
func (s *set[S]) add(state S, parent uint32) {
	slot := s.find(state)
	if s.index[slot] != 0 {
		return
	}
	if len(s.parents)%chunk == 0 {
		s.chunks = append(s.chunks, make([]S, 0, chunk))
	}
	last := len(s.chunks) - 1
	s.chunks[last] = append(s.chunks[last], state)
	s.parents = append(s.parents, parent)
	s.index[slot] = uint32(len(s.parents))
	if 2*len(s.parents) > len(s.index) {
		s.grow()
	}
}

// find gives the slot that holds the state, or the free one where it belongs.
func (s *set[S]) find(state S) uint64 {
	mask := uint64(len(s.index) - 1)
	slot := maphash.Comparable(s.seed, state) & mask
	for s.index[slot] != 0 && s.chunks[(s.index[slot]-1)/chunk][(s.index[slot]-1)%chunk] != state {
		slot = (slot + 1) & mask
	}
	return slot
}

func (s *set[S]) grow() {
	s.index = make([]uint32, 2*len(s.index))
	for n := range s.parents {
		s.index[s.find(s.state(uint32(n)))] = uint32(n) + 1
	}
}

// trace walks back to the start and asks each parent again which action led on: names are not kept during the search.
func (s *set[S]) trace(at uint32, p protocol[S]) []string {
	var back []string
	for ; at != 0; at = s.parents[at] {
		child := s.state(at)
		for _, n := range p.next(s.state(s.parents[at]), nil) {
			if n.state == child {
				back = append(back, n.step.String())
				break
			}
		}
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}
