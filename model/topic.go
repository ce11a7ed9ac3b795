package model

// Topic is a protocol of its own: two activities, each recovering, whose messages stand in one queue. What a message
// does to the stock is Check's business; here a message is only placed or not, and whoever sent it was told accepted.
type Topic struct {
	Name     string
	Messages []int8  // the activity, 0 or 1, of each message in the queue, in order, at most 4
	Lost     [2]bool // the activity's stock has to be recovered
	Dead     [2]bool // its Redis does not come back
	Cleaned  [2]bool // the activity is unknown here: its keys are gone, nobody recovers it
	Window   int     // messages that a consumer may hold unplaced
	Without  TopicRule
}

// TopicRule is a rule of Topic.
type TopicRule uint8

const (
	// AllWrittenFirst (rule 4): steps 1-3 are done for every activity of a Redis before step 4 of any. Without it one
	// activity's drain waits behind messages of the other, which wait for a recovery that waits for the drain.
	AllWrittenFirst TopicRule = 1 << iota
	// SettledByRow (rule 4): a message of an unknown or cleaned up activity is settled by its row alone (none: dead
	// letter). Without it no drain of the topic ever ends.
	SettledByRow
	// SetAside (rules 4 and 5): a message that is answered -5 is set aside in the database, and only then counts as gone
	// from the queue. Without it, held in memory, a Redis that stays away fills the consumer's window and stops the
	// other activities; with a window that is never full it still holds back the recorded offset, so that no other
	// activity on the topic can end its drain.
	SetAside
	// AsideCounts (rule 5): an activity is drained only when nothing of its own is set aside. Without it an activity goes
	// live before a message of its own that was set aside is placed.
	AsideCounts
)

// Where a message of Topic stands.
const (
	queued = byte('q')
	held   = byte('h')
	aside  = byte('s')
	gone   = byte('p') // placed, or settled by its row
)

const maxMessages = 4

// topicState: steps per activity are none (nobody has begun), writing (rows read, Redis not yet written), draining, live.
type topicState struct {
	messages [maxMessages]byte
	steps    [2]byte
}

const isLive = byte('L')

// Promises of Topic.
const (
	EarlyLive = "live before what was promised is placed"
	NotPlaced = "told accepted and has no outcome, although its Redis is there"
)

// Check walks the whole world; a few thousand states at most.
func (w Topic) Check() Result {
	start := topicState{}
	for i := range w.Messages {
		start.messages[i] = queued
	}
	for a := range start.steps {
		if !w.Lost[a] && !w.Dead[a] && !w.Cleaned[a] {
			start.steps[a] = isLive
		}
	}
	return search(protocol[topicState]{start: start, next: w.next, promise: w.promise}, maxStates)
}

func (w *Topic) on(r TopicRule) bool { return w.Without&r == 0 }

// next is one consumer that retries in place, and one recoverer.
func (w *Topic) next(s topicState, out []successor[topicState]) []successor[topicState] {
	do := func(verb string, i int, to topicState) {
		out = append(out, successor[topicState]{step{verb, -1, int8(i), ""}, false, to})
	}
	holding, next := 0, -1
	for i := range w.Messages {
		switch n := s; s.messages[i] {
		case queued:
			if next < 0 {
				next = i
			}
		case held:
			holding++
			if verb, to := w.handle(&s, i); verb != "" {
				n.messages[i] = to
				do(verb, i, n)
			}
		case aside:
			if w.answers(&s, w.Messages[i]) {
				n.messages[i] = gone
				do("place what was set aside", i, n)
			}
		}
	}
	if next >= 0 && holding < w.Window {
		n := s
		n.messages[next] = held
		do("consume", next, n)
	}
	for a := range int8(2) {
		if verb, to := w.recover(&s, a); verb != "" {
			n := s
			n.steps[a] = to
			do(verb, int(a), n)
		}
	}
	return out
}

// answers says whether the activity's claims work.
func (w *Topic) answers(s *topicState, a int8) bool {
	return s.steps[a] == draining || s.steps[a] == isLive
}

func (w *Topic) handle(s *topicState, i int) (string, byte) {
	a := w.Messages[i]
	switch {
	case w.answers(s, a):
		return "claim, place", gone
	case w.Cleaned[a] && w.on(SettledByRow):
		return "settle by its row", gone
	case !w.Cleaned[a] && w.on(SetAside):
		return "claim is answered -5, set aside", aside
	}
	return "", held
}

func (w *Topic) recover(s *topicState, a int8) (string, byte) {
	other := 1 - a
	recovering := func(a int8) bool { return w.Lost[a] && !w.Dead[a] && !w.Cleaned[a] }
	if !recovering(a) {
		return "", 0
	}
	switch s.steps[a] {
	case none: // one recoverer: it takes up the second activity when the first is live, or, by the rule, when it is written
		if recovering(other) && (s.steps[other] == writing || s.steps[other] == draining && !w.on(AllWrittenFirst)) {
			return "", 0
		}
		return "recover: raise the epoch, read the rows", writing
	case writing:
		return "recover: write Redis", draining
	case draining:
		if recovering(other) && w.on(AllWrittenFirst) && !w.answers(s, other) {
			return "", 0
		}
		if w.drained(s, a) {
			return "recover: drained, live", isLive
		}
	}
	return "", 0
}

// drained: the recorded offset has passed the end, for a queue has one offset whoever its messages belong to.
func (w *Topic) drained(s *topicState, a int8) bool {
	for i, activity := range w.Messages {
		if s.messages[i] == queued || s.messages[i] == held || s.messages[i] == aside && activity == a && w.on(AsideCounts) {
			return false
		}
	}
	return true
}

func (w *Topic) promise(s topicState, atRest bool) string {
	for i, a := range w.Messages {
		open := s.messages[i] != gone
		if open && w.Lost[a] && s.steps[a] == isLive {
			return EarlyLive
		}
		if open && atRest && s.steps[a] == isLive {
			return NotPlaced
		}
	}
	for a := range w.Lost {
		if atRest && s.steps[a] != isLive && w.Lost[a] && !w.Dead[a] && !w.Cleaned[a] {
			return NeverLive
		}
	}
	return ""
}
