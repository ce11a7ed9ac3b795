package model

// Rule is one rule of the protocol. A world keeps all of them but those named in Without; each has a test that takes it
// away and expects the sequence that its comment tells. Where two rules each do without the other, both are taken away.
// Numbers are those of the ledger's rules; those without a number were found here, by walking features together.
type Rule uint64

const (
	// Fence: every transaction that moves stock carries the epoch it claimed under. Without it a worker that claimed
	// before a loss commits after the recovery read the rows, and the unit is sold twice.
	Fence Rule = 1 << iota
	// Adopt: a claim of an unknown token takes a unit and the user's slot, or the token fails. Without it a late message
	// sells a unit that nobody holds, and the books never balance again.
	Adopt
	// Drain: a recovery goes live only after what was in the queue is placed. Without it a lost reservation's unit is
	// sold to somebody else while its message, whose buyer was told accepted, still waits.
	Drain
	// Returned: a closed row whose unit is not yet back in Redis is marked and taken up again. Without it a closer that
	// dies between database and Redis loses the unit.
	Returned
	// ClaimCheck: claims, commits and releases wait while the stock is not proven. Belt and braces: with the fence alone
	// no promise breaks.
	ClaimCheck
	// LiveCheck: the live step checks the identity once more. Without it a Redis that rewinds during the drain goes live
	// with the old stock.
	LiveCheck
	// DropStale: occupied records of a Redis that is older than the last epoch that went live are dropped. Without it
	// an earlier recovery's dead reservations come back and hold units that are sold.
	DropStale

	// ClearIdentity (rule 2): every recovery, reconcile included, first clears the identity in meta. Without it a
	// reconcile killed after it raised the epoch leaves a Redis that sells on while every placing fails the fence.
	ClearIdentity
	// BehindRecovers (rule 2): a claim that finds its epoch behind the database's starts a recovery. Without it a
	// recoverer that was stopped just before it raised the epoch, woken after its successor went live, then killed,
	// leaves the same standstill.
	BehindRecovers
	// AnybodyNotices: not only a claim, but a regular look, too, finds Redis behind the database. Without it that recoverer
	// leaves a sale without buyers for ever as it is: no restock and no close passes its fence.
	AnybodyNotices
	// OnlyNewerWrites (rule 3): rebuild and live refuse unless their epoch is newer than meta's and still the
	// database's. Without it a woken recoverer writes old rows over a newer epoch.
	OnlyNewerWrites

	// DrainUnderEpoch: a draining recovery looks at the database's epoch, too, and gives up where it is not its own.
	// Without it one that wrote over a Redis that a newer one had written and that then rewound drains for ever: the
	// messages it waits for fail the fence.
	DrainUnderEpoch

	// PlacedOffsets (rule 5): drained is counted in recorded placed offsets. Without it a message that a worker holds
	// counts as drained, and its unit is sold before the worker adopts it.
	PlacedOffsets
	// NeverLater (rule 5): a well-formed message is retried in place. Without it a message is parked in the retry topic,
	// and without RetryEmpty, is in no queue when the end is read, and comes back when its unit is sold.
	NeverLater
	// RetryEmpty (rule 5): drained also means an empty retry topic, looked at before the end is read and after it. It and
	// NeverLater each do without the other.
	RetryEmpty
	// EndAfterGrace: the queue's end is read after G has passed since the write, not at the write. Without it an edge
	// that enqueues between the write and the end of G says accepted (its reply is younger than G) for a message that
	// no drain waits for.
	EndAfterGrace

	// NewestPresent (rule 6): the drain is skipped only where the newest ledger id ever handed out is in this Redis.
	// Without it (the workers' newest is used) a rewind by less than the backlog is invisible.
	NewestPresent
	// EveryEdgeAnswers (rule 6): an edge that cannot be asked for the newest id it heard means drain. Without it an edge
	// that said accepted and died takes the id with it.
	EveryEdgeAnswers

	// DropForgetsIDs: a rebuild that drops records as older drops the ledger ids of that Redis, too, in the same script, so
	// that no later recovery takes it for one that lost nothing. Without it an edge that was stopped over a loss asks again
	// and says accepted under the new epoch, Redis rewinds to before that loss, the record is dropped as older, and yet the
	// newest id, the edge's own, is there. (That the recoverer remembers what it dropped is not enough: it may die.)
	DropForgetsIDs
	// SkipLeavesMark: only an epoch that went live after a drain counts as the one whose recovery has dealt with older
	// records. Without it a drain is skipped, Redis rewinds to the same snapshot once more, its records and the messages
	// that still wait are now dropped as older, and a buyer who was told accepted has nothing.
	SkipLeavesMark

	// AskAgain (rule 7): an edge whose reserve reply is older than G when the queue acknowledges asks reserve again with
	// the same token. Without it an edge that was stopped longer than the drain waited says accepted for a lost unit.
	AskAgain

	// AdoptCurrent: a message or swept token that Redis does not know during a drain, that has no row, and that was reserved
	// under an epoch before the last one that went live after a drain, is dropped; an edge that asked again under a newer epoch
	// enqueues again before it says accepted. Without it a message that nobody was promised (its edge was stopped, asked
	// again and said sold out) takes, after a second loss, the unit of a buyer who was told accepted since.
	AdoptCurrent

	// LotEpoch (rule 9): restock carries the epoch of its lot's row and is refused under another. Without it restock adds to
	// what an older recoverer wrote, and the newer one, which read before the lot's row, writes over it.
	LotEpoch
	// LotWritten: rebuild also writes the operation ids of the lots it counted into Redis. Without it a lot whose row was
	// written between the raising of the epoch and the reading of the rows carries the new epoch, is counted, and its
	// restock, already on its way, passes the epoch check and adds it again.
	LotWritten

	// ReadUnderEpoch: a recovery reads the rows and marks the lots applied in one transaction that holds only while the
	// epoch is its own. Without it a recoverer whose successor has read before the lot's row marks the lot applied, gives
	// up at its write, and the successor writes without the lot, which nobody restocks any more.
	ReadUnderEpoch

	// MarkWithRow (rule 12): every transition sets announced = 0 in the row's own transaction. Without it a worker
	// that dies after its commit leaves an outcome that nobody announces.
	MarkWithRow
	// ClearAfterScript (rule 12): announced is set only after the script wrote and published the outcome. Without it the
	// same death leaves the same silence.
	ClearAfterScript
	// ClearSameRow: announced is set only where the row still is what was announced. Without it a placer's late mark
	// covers the close that happened meanwhile, and a closer's death then loses the unit.
	ClearSameRow
	// ReadAgain (rule 12): a watched, unfinished token is read again every few seconds. Without it an outcome that was
	// published while the subscription was down is never heard.
	ReadAgain

	// ForgetReleased: only a released record whose row is announced leaves `res`. Without it a live order's record goes
	// too, and its close has no unit to give back.
	ForgetReleased
	// SameRecord: commit carries the stamp of the record that was claimed (when it was taken) and leaves another record
	// alone. Without it a placer that is slower than a close and the forgetting commits the record that a late message or
	// a repeat took after that; whoever took it dies, everybody finds the token settled, and the unit is lost. A repeat
	// may so be told accepted once more, but its row's outcome stays the only one.
	SameRecord
)

// Feature is a part of the protocol that only some worlds have, because the number of states explodes.
type Feature uint64

const (
	// Recoveries: every step of a recovery apart, the identity as a fact of its own, so that a dead recoverer leaves a
	// written Redis behind, whose claims work on.
	Recoveries Feature = 1 << iota
	// Paged: a recovery reads Redis' records page by page before it writes, instead of in one script.
	Paged
	// Reconcile: an operator may start a recovery of a live Redis, once.
	Reconcile
	// Zombie: a recoverer may be stopped anywhere, lose its lease, and wake, once.
	Zombie
	// Offsets: the drain waits for the messages below the queue's end instead of for an empty queue.
	Offsets
	// SkipDrain: where Redis proves that it lost nothing, the drain is skipped; edges die after they said accepted, too.
	SkipDrain
	// StoppedEdge: an edge may be stopped between reserve and enqueue for longer than any drain waits.
	StoppedEdge
	// AddLot: an operator adds one unit, once; whoever does it may die and be taken up again.
	AddLot
	// Outcomes: announced instead of returned; a buyer hears outcomes, may miss what is published, and reads again.
	Outcomes
	// Forget: released records leave `res` (needs Outcomes), and a buyer may repeat a token, once.
	Forget
)
