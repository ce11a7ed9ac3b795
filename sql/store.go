// Package sql is the database of orders behind gorm: MySQL or MariaDB for real, SQLite embedded, by the same store. The
// order's row is the arbiter between "sold" and "never sold": its unique key decides, and every transaction that moves stock
// is fenced by the epoch of the item's row.
package sql

import (
	"context"
	"errors"
	"time"

	"floodgate/sale"
)

// Errors that callers tell apart.
var (
	ErrNotFound = errors.New("no such row")
	ErrFenced   = errors.New("another epoch stands in the database") // claim again
	ErrConflict = errors.New("the row has changed or cannot be so")  // e.g. resume of an ended activity
	ErrExists   = errors.New("exists already")
	ErrNoNode   = errors.New("all node ids are leased")
)

// ItemState is the row of an item: the stock that transactions move.
type ItemState struct {
	Commodity    sale.ID
	Total        int64
	Sold         int64 // units of live orders
	FallbackLeft int64
	Epoch        int64
	LiveEpoch    int64 // the newest epoch that went live
}

// Activity is the activity with its items' states, in the order of sale.Activity.Items.
type Activity struct {
	sale.Activity
	States    []ItemState
	Epoch     int64 // of all items
	LiveEpoch int64
}

// PlaceRequest is one row to insert: Order.State is StatePending (takes Quantity units and its Slots) or StateFailed (takes nothing).
// Order numbers are minted by the caller.
type PlaceRequest = sale.Order

// Placed tells what became of the rows of one Place call.
type Placed struct {
	Inserted []sale.Order // now in the database in the state that was asked for
	Existing []sale.Order // the token's row was there before: settle by its state
	NoSlot   []sale.Order // not inserted: a live order of the user holds one of the slots; insert again as failed (duplicate)
	NoStock  []sale.Order // not inserted: fewer units were left; insert again as failed (sold_out)
	SameNo   []sale.Order // not inserted: the order number exists; mint again
}

// OrderPage selects a user's orders, newest first.
type OrderPage struct {
	User   sale.ID
	Limit  int     // 1..100
	Before sale.ID // order number of the cursor, 0 for the first page
}

// Lot is an added stock: counted in the database at once, in Redis by restock under Epoch.
type Lot struct {
	Operation string
	Activity  sale.ID
	Commodity sale.ID
	Units     int64
	Epoch     int64
	Applied   bool
	CreatedAt sale.Millis
}

// Operation is one line of the operators' log.
type Operation struct {
	At       sale.Millis `json:"at"`
	Who      string      `json:"who"`
	Action   string      `json:"action"`
	Activity sale.ID     `json:"activityId,omitzero"`
	Before   string      `json:"before,omitempty"`
	After    string      `json:"after,omitempty"`
}

// API is every method of the store, for reference; consumers declare the few they use. All are safe for concurrent use, retry
// deadlocks (1213), lock waits (1205) and SQLITE_BUSY with jitter at most 3 times, and read back after an unknown COMMIT where they say so.
type API interface {
	// CreateActivity inserts activity and items (epoch 1, live_epoch 0, status created); ID 0 gets a new one (milliseconds-based, increasing). ErrExists.
	CreateActivity(ctx context.Context, a sale.Activity) (sale.ID, error)
	Activity(ctx context.Context, id sale.ID) (Activity, error)
	// Activities lists by id descending, before the id (0: from the newest), statuses empty for all.
	Activities(ctx context.Context, before sale.ID, limit int, statuses ...sale.Status) ([]Activity, error)
	// SetStatus moves created->live, live<->paused, live|paused->ended; ErrConflict otherwise, no error where it is so already.
	SetStatus(ctx context.Context, id sale.ID, to sale.Status) (before sale.Status, err error)
	// SetWindow moves start and end (ErrConflict once ended).
	SetWindow(ctx context.Context, id sale.ID, starts, ends sale.Millis) error
	SetPrice(ctx context.Context, id, commodity sale.ID, price sale.Cents) error
	// AddLot counts the units in the item's total in one transaction; the same operation id gives the lot that exists (no change).
	AddLot(ctx context.Context, l Lot) (Lot, error)
	LotsToApply(ctx context.Context, activity sale.ID) ([]Lot, error) // applied = false
	MarkLotsApplied(ctx context.Context, operations ...string) error

	// RaiseEpoch adds one to the epoch of every item row of the activity in one transaction and returns the new epoch.
	RaiseEpoch(ctx context.Context, activity sale.ID) (int64, error)
	// HoldsEpoch says whether the epoch is still the database's (a locking read).
	HoldsEpoch(ctx context.Context, activity sale.ID, epoch int64) (bool, error)
	// RecordLive notes live_epoch = epoch where the epoch still stands (ErrFenced otherwise), and marks every lot of the activity that the rebuild counted as applied.
	RecordLive(ctx context.Context, activity sale.ID, epoch int64, countedLots []string) error

	// Place inserts rows of ONE item in one transaction: multi-row insert of orders and of slots, then
	// UPDATE items SET sold = sold + n WHERE ... AND epoch = :epoch AND sold + n <= total - fallback_left LAST; failed rows check the epoch too.
	// ErrFenced: nothing was written. Duplicates and shortage split the batch as in Placed. An unknown COMMIT is read back by token. At most 500 rows.
	Place(ctx context.Context, activity, commodity sale.ID, epoch int64, rows []PlaceRequest) (Placed, error)
	OrdersByToken(ctx context.Context, tokens ...sale.Token) ([]sale.Order, error)
	OrderByNo(ctx context.Context, no sale.ID) (sale.Order, error)
	OrdersOfUser(ctx context.Context, p OrderPage) ([]sale.Order, error)
	// OrdersOfActivity walks rows by order number in pages of at most limit, for recovery and audit. liveOnly: pending and paid only.
	OrdersOfActivity(ctx context.Context, activity, after sale.ID, limit int, liveOnly bool) ([]sale.Order, error)
	// Unannounced lists rows whose outcome has not been announced, changed before the given instant, oldest first.
	Unannounced(ctx context.Context, before sale.Millis, limit int) ([]sale.Order, error)
	// MarkAnnounced clears the mark of rows that still are in the state that was announced.
	MarkAnnounced(ctx context.Context, orders []sale.Order) error

	// RecordPlaced notes positions (next offset to place) per queue of a topic, never backwards.
	RecordPlaced(ctx context.Context, topic, queue string, next int64) error
	PlacedPositions(ctx context.Context, topic string) (map[string]int64, error)

	// TakeLease gives the named lease to owner until now+ttl (database clock) where it is free, expired or already the owner's.
	TakeLease(ctx context.Context, name, owner string, ttl time.Duration) (bool, error)
	DropLease(ctx context.Context, name, owner string) error
	// TakeNode leases a free node id in 0..1023 for minting order numbers. ErrNoNode.
	TakeNode(ctx context.Context, owner string, ttl time.Duration) (int, error)
	RenewNode(ctx context.Context, node int, owner string, ttl time.Duration) (bool, error)

	LogOperation(ctx context.Context, o Operation) error
	Operations(ctx context.Context, limit int) ([]Operation, error)
}
