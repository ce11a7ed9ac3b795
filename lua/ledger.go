// Package lua is the ledger of stock in Redis: one verb is one script (reserve.lua) beside one method (reserve.go).
// keys.go is the only place that builds a Redis key. All keys of one cell of an activity share a hash tag, every script
// is single-slot, and every script that takes or returns stock first reads its own server's run id and replication id:
// where they differ from the proven ones in `meta` it answers [Unproven] and nothing moves.
package lua

import (
	"context"
	"errors"
	"time"

	"floodgate/sale"
)

// Code is a script's answer for one request. The list is closed; an unknown code is a bug and panics.
type Code int

// The codes of all scripts.
const (
	Reserved   Code = 1  // reserve: taken; claim: occupied; commit, release: done now
	Again      Code = 2  // reserve: the same token again, nothing taken; claim: adopted just now; commit, release: was so already
	SoldOut    Code = 0  // reserve: fewer remain than asked for; claim: cannot adopt, no unit left
	Unopened   Code = -1 // not initialised: no meta or no stock key
	Duplicate  Code = -2 // reserve: the limit is reached; claim: cannot adopt, no slot free
	NotStarted Code = -3
	Ended      Code = -4
	Unproven   Code = -5 // paused (reserve only), recovering (reserve only) or not proven on this Redis process
	Stale      Code = -6 // restock, rebuild: another epoch
	Reused     Code = -7 // reserve: the token stands for another item or quantity
	Settled    Code = 3  // claim: committed or released already; the row decides
	Unknown    Code = 4  // commit, release: no such token here, or (commit) released
)

// Limits of one call.
const (
	MaxReserve = 256 // requests a reserve call
	MaxBatch   = 256 // tokens a claim, commit or release call: under miniredis's and Redis's 2,000 arguments
)

// Times of the protocol, each sent to the scripts that need it.
const (
	FirstLook  = 3 * time.Second  // a reserved token is first looked at by the sweep
	QueuedLook = 30 * time.Second // what the queue has is looked at
	Hold       = 30 * time.Minute // a reservation that could not be placed becomes a failed row after this (meta hold_ms)
	Forget     = 10 * time.Minute // a released record stays readable this long, then `due` drops it
	Grace      = 2 * time.Second  // G: an edge whose reserve reply is older asks again before it says accepted
)

// ErrUnopened and ErrUnproven are what whole calls fail with; batch calls give a Code a token instead where they can.
var (
	ErrUnopened = errors.New("the activity is not open in Redis")
	ErrUnproven = errors.New("the stock in Redis is not proven")
	ErrStale    = errors.New("another epoch stands in Redis")
)

// Cell names one cell of an activity; cell 0 is the only one until activities are split.
type Cell struct {
	Activity sale.ID
	Cell     int
}

// ReserveRequest is one buyer's wish.
type ReserveRequest struct {
	Token    sale.Token
	User     sale.ID
	Quantity int
}

// ReserveReply answers a batch: one ReserveAnswer a request, in order.
type ReserveReply struct {
	Answers   []ReserveAnswer
	Remaining int64 // after the batch; 0, and no news, where all are Unopened or Unproven
	Epoch     int64
	Version   int64
	At        sale.Millis // Redis's clock
	LedgerID  string      // stream id of the batch's entry, or of the newest where nothing was taken
	Pending   string      // the member of `pending` that stands for the batch; what Enqueued wants
}

// ReserveAnswer is the code of one request; Live holds the user's live tokens where it is Duplicate.
type ReserveAnswer struct {
	Code Code
	Live []sale.Token
}

// ClaimRequest is a message or a due reservation that is about to be placed.
type ClaimRequest struct {
	Token     sale.Token
	User      sale.ID
	Commodity sale.ID
	Quantity  int
	Price     sale.Cents
	At        sale.Millis // when it was reserved; an adopted token's hold starts anew at the claim, so scripts don't read it
}

// ClaimAnswer tells how to go on: Reserved (occupied) and Again (adopted) are to be sold and carry the reservation,
// SoldOut and Duplicate become failed rows, Settled is decided by its row, Unproven waits, Unopened is decided by its row.
type ClaimAnswer struct {
	Code        Code
	Reservation sale.Reservation
}

// Settlement writes an order's outcome into its reservation and publishes it. Commit takes live orders (pending, paid),
// Release those that hold nothing (failed, cancelled, closed): it gives unit and slot back where the token held them.
type Settlement struct {
	Outcome   sale.Outcome
	Commodity sale.ID
	Quantity  int
}

// State is what `inspect` sees of a cell: for recovery, catalog, audit and doctor.
type State struct {
	Opened     bool // meta and stock are there; the rest is filled as far as it is
	Proven     bool // identity in meta equals this server's
	Recovering bool
	Rebuilding bool // a recovery has dropped the stock and not written it again; meta is still of the epoch before
	Status     sale.Status
	Epoch      int64
	Version    int64
	Remaining  map[sale.ID]int64
	Catalog    sale.Activity // as last described by the worker
	LedgerID   string        // newest id of the ledger stream
	Now        sale.Millis   // Redis's clock
	Pending    int64         // members of pending
	Reserved   int64         // records in res
}

// Entry is one transition of the ledger stream.
type Entry struct {
	ID     string
	Fields map[string]string
}

// API is every verb of the ledger, for reference; consumers declare the few they use. All are safe for concurrent use.
type API interface {
	// Open loads stock once. Reserved: opened now. Again: the same epoch was open already, nothing changed. Stale: another epoch.
	// ErrUnproven: this Redis does not tell its identity.
	Open(ctx context.Context, a sale.Activity, epoch int64, remaining map[sale.ID]int64) (Code, error)
	// Describe writes status, window, limit and catalog of an open activity (extend, end, price, a re-read by the worker) and moves
	// the expiry of all its keys. It never touches stock or `recovering`.
	Describe(ctx context.Context, a sale.Activity) error
	Pause(ctx context.Context, c Cell) error
	Resume(ctx context.Context, c Cell) error
	// Reserve takes a batch for one item. An error means unanswered: ask again with the same tokens, never give back.
	Reserve(ctx context.Context, c Cell, commodity sale.ID, price sale.Cents, batch []ReserveRequest) (ReserveReply, error)
	// Enqueued moves the next look at a batch, all of whose tokens the queue has acknowledged, to QueuedLook from now.
	Enqueued(ctx context.Context, c Cell, pending ...string) error
	// Claim returns the epoch all answers were given under.
	Claim(ctx context.Context, c Cell, batch []ClaimRequest) ([]ClaimAnswer, int64, error)
	Commit(ctx context.Context, c Cell, batch []Settlement) ([]Code, error)
	Release(ctx context.Context, c Cell, batch []Settlement) ([]Code, error)
	// Due hands out at most limit members' occupied reservations that somebody must look at, drops settled tokens, forgets released
	// records after Forget, and pushes the members forward by FirstLook, so that any number of sweepers may run.
	Due(ctx context.Context, c Cell, limit int) (due []sale.Reservation, holdPassed []sale.Reservation, err error)
	// Restock adds n units of an item once for each operation id. Reserved, Again, Stale (another epoch), Unproven, Unopened.
	Restock(ctx context.Context, c Cell, commodity sale.ID, n, epoch int64, operation string) (Code, error)
	Inspect(ctx context.Context, c Cell) (State, error)
	// Reservations reads records by token; a token that is not there is absent from the map. No script: one HMGET.
	Reservations(ctx context.Context, c Cell, tokens ...sale.Token) (map[sale.Token]sale.Reservation, error)
	// Activities is the set seckill:activities.
	Activities(ctx context.Context) ([]sale.ID, error)
	// Ledger reads transitions, oldest first, at most limit after the id ("" from the start).
	Ledger(ctx context.Context, c Cell, after string, limit int) ([]Entry, error)
	// Scan walks all reservations of a cell in pages (HSCAN), each at least once; for audit and recovery.
	Scan(ctx context.Context, c Cell, page func([]sale.Reservation) error) error
	// Buyers walks the buyers hash in pages: key user:commodity, value the tokens by slot ("" free).
	Buyers(ctx context.Context, c Cell, page func(user, commodity sale.ID, slots []sale.Token) error) error
	// Drop unlinks every key of a cell and takes the activity from seckill:activities.
	Drop(ctx context.Context, c Cell) error

	// Unprove clears the identity in meta: from here no script moves stock until a recovery is done. First step of every recovery.
	Unprove(ctx context.Context, c Cell) error
	// RebuildBegin refuses (Stale) unless epoch is newer than meta's `building` and `epoch`; it notes `building`, drops buyers, stock and
	// pending (they are derived), and leaves res. Works where nothing exists (an empty Redis).
	RebuildBegin(ctx context.Context, c Cell, epoch int64) (Code, error)
	// RebuildPage writes reservations (HSET res, slots into buyers, occupied ones into pending, due FirstLook from now) and drops tokens. Stale where `building` differs.
	RebuildPage(ctx context.Context, c Cell, epoch int64, keep []sale.Reservation, drop []sale.Token) (Code, error)
	// RebuildLots notes the operation ids of lots that the stock to be written counts: Restock answers Again for them. Stale where `building` differs.
	RebuildLots(ctx context.Context, c Cell, epoch int64, operations []string) (Code, error)
	// RebuildEnd writes stock, meta (status, window, catalog, epoch), this server's identity and recovering=1: claims work, reserve does not. Stale where `building` differs.
	RebuildEnd(ctx context.Context, a sale.Activity, epoch int64, remaining map[sale.ID]int64) (Code, error)
	// RebuildLive ends the recovery: refuses with Stale unless meta's epoch is this one, with Unproven unless the identity is still this server's; clears recovering, publishes every item's stock.
	RebuildLive(ctx context.Context, c Cell, epoch int64) (Code, error)

	// Channels: SubscribeStock and SubscribeOutcomes of go-redis by the names in keys.go (StockChannel, OutcomeChannel).
}
