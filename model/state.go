package model

// maxTokens and maxWorkers bound a world; a bigger one explodes.
const (
	maxTokens  = 3
	maxWorkers = 2
)

// What `res` says of a token: unknown is also what a lost or forgotten record looks like.
const (
	unknown   = byte('-')
	occupied  = byte('O')
	committed = byte('C')
	released  = byte('X')
)

// What the row in the database says. There is no way back to no row.
const (
	noRow  = byte('-')
	placed = byte('P')
	failed = byte('F')
	closed = byte('X')
)

// Where the edge of a token stands.
const (
	idle     = byte('i')
	reserved = byte('r') // has the reply of reserve, has not enqueued
	told     = byte('t') // has said accepted
	dead     = byte('d') // before it said anything
	toldDead = byte('T') // after it had said accepted
	stopped  = byte('z') // held between reserve and enqueue, longer than G
	asking   = byte('a') // woken and enqueued, asks reserve again before it says anything
	refused  = byte('n') // asked again, and said busy or sold out
)

// Steps of a worker with one token in hand; none has nothing in hand.
const (
	none    = byte(0)
	got     = byte('g')
	sellIt  = byte('o') // claimed: a unit is held
	failIt  = byte('n') // could not be adopted
	finish  = byte('f') // the row exists, Redis is to follow
	marking = byte('m') // Redis has followed, the row is to be marked announced
	early   = byte('e') // a rule is off: marked before Redis has followed
	ack     = byte('a')
)

// Steps of a recovery.
const (
	cleared   = byte('c') // the identity is out of meta, the epoch not yet raised
	reading   = byte('r') // the epoch is raised
	writing   = byte('w') // the rows are read
	checked   = byte('k') // the database said that the epoch is still this one's, the script is not yet called
	draining  = byte('d') // Redis is written: claims work, reserve does not
	emptying  = byte('e') // the queue's end is read, what lies before it is being placed
	recording = byte('l') // the database has recorded the epoch as live, the script is not yet called
)

type work struct {
	stamp     int8 // which record of its token it claimed
	born      int8 // the epoch of the message or record that it picked up
	step, src byte // src: q the queue, s the sweeper
	token     int8
	epoch     int8
	row       byte // what its own transaction made of the row; kept only where outcomes are modelled
}

type closing struct {
	step  byte // none, got (the row is closed, Redis is to follow), marking
	token int8
	row   byte
}

type recovery struct {
	step, mark         byte // mark: messages below the queue's end as it was read
	epoch, sold, total int8
	found              int8 // the epoch that Redis held when it was read in pages
	lot                bool
	rows, res          [maxTokens]byte
}

// ledger is what one Redis holds and a snapshot keeps.
type ledger struct {
	epoch, rem int8
	newest     int8 // the newest ledger id in it
	lot        bool // restock has run here for the lot
	res        [maxTokens]byte
}

// state is everything: Redis, database, queue, and where each process stands. It is compared and hashed as a whole.
type state struct {
	redis ledger
	snap  ledger
	live  bool
	known bool // the identity in meta is this server's; kept only where recoveries are modelled step by step

	epoch, lived int8 // the database's epoch, and the last one that went live after a drain
	sold, total  int8
	rows         [maxTokens]byte
	done         byte // bit a token: returned, or announced where outcomes are modelled

	lot      byte // none, got (row written, restock to come), again, marking, ack
	lotEpoch int8
	applied  bool

	edges         [maxTokens]byte
	born          [maxTokens]int8 // the epoch that the token's newest message and record were reserved under
	ids           [maxTokens]int8 // the ledger id that the edge heard with its reservation
	noted         int8            // the newest ledger id that workers saw as they claimed
	queue, parked byte            // bits: in the queue, in the retry topic
	heard         [maxTokens]byte // the outcome that the buyer knows
	deaf          byte            // bits: the buyer's subscription is down
	stamps        [maxTokens]int8 // the record of a token that is current: a forgotten one is never that again
	repeats       int8

	work            [maxWorkers]work
	closing         closing
	recover, zombie recovery

	crashes, failures, closes, reconciles, stops int8
}

func bit(t int8) byte            { return 1 << t }
func has(bits byte, t int8) bool { return bits&bit(t) != 0 }
func (r recovery) isDraining() bool {
	return r.step == draining || r.step == emptying || r.step == recording
}
func (w work) holds(t int8, src byte) bool { return w.step != none && w.token == t && w.src == src }
