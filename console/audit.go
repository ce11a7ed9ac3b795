package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// Audit is what an audit found: promises 1 (never oversold), 2 (nothing vanishes) and 4 (limits hold) over Redis, queue and database.
type Audit struct {
	At         sale.Millis     `json:"at"`
	Balanced   bool            `json:"balanced"` // no fault anywhere
	Exact      bool            `json:"exact"`    // every activity held still: the sums are one instant's
	Activities []ActivityAudit `json:"activities"`
	Queue      QueueAudit      `json:"queue"`
}

// ActivityAudit is one activity, every sum side by side.
type ActivityAudit struct {
	ID       sale.ID     `json:"id"`
	Title    string      `json:"title"`
	Status   sale.Status `json:"status"`
	State    string      `json:"state"` // "still"; "moving": bounds only; or Redis's state where its stock is not proven: the database only
	Balanced bool        `json:"balanced"`
	Exact    bool        `json:"exact"`
	Limit    int         `json:"perUserLimit"`
	Shelf    int64       `json:"shelf"` // messages put aside until the stock is proven
	Items    []ItemAudit `json:"items"`
	Faults   []Finding   `json:"faults"`
	More     int         `json:"moreFaults,omitempty"` // found and not listed
}

// ItemAudit is one item's sums, in units.
type ItemAudit struct {
	Commodity    sale.ID `json:"commodityId"`
	Total        int64   `json:"total"`
	ToApply      int64   `json:"toApply"`      // added lots that Redis does not have yet
	Remaining    int64   `json:"remaining"`    // in Redis
	Occupied     int64   `json:"occupied"`     // reserved in Redis, without a live row
	Committed    int64   `json:"committed"`    // committed in Redis
	Reserved     int64   `json:"reserved"`     // occupied and committed in Redis: what buyers' slots must add up to
	BuyersUnits  int64   `json:"buyersUnits"`  // slots in Redis
	LiveUnits    int64   `json:"liveUnits"`    // by the rows of live orders
	Sold         int64   `json:"sold"`         // the item row's counter
	SlotRows     int64   `json:"slotRows"`     // slots in the database
	FallbackLeft int64   `json:"fallbackLeft"` // never in Redis
	Difference   int64   `json:"difference"`   // total - toApply - (remaining + occupied + liveUnits + fallbackLeft)
}

// Finding is one broken promise, with the first token or user that breaks it.
type Finding struct {
	Check     string     `json:"check"` // e.g. "committed-without-row"
	Commodity sale.ID    `json:"commodityId,omitzero"`
	Token     sale.Token `json:"requestToken,omitempty"`
	User      sale.ID    `json:"userId,omitzero"`
	Text      string     `json:"text"`
}

const (
	auditTries  = 5                      // a sale that moves through all of them is judged by its bounds
	auditPause  = 200 * time.Millisecond // what is in flight lands meanwhile
	findingsMax = 20                     // listed for one activity
	currentMax  = 1000                   // activities of one audit
)

// errMoved says that something moved while the two sides were read.
var errMoved = errors.New("the sale moved")

func (c *Console) auditAll(r *http.Request) (any, error) {
	current, err := c.deps.Store.Current(r.Context(), sale.At(c.now()), currentMax)
	if err != nil {
		return nil, err
	}
	return c.audit(r.Context(), current)
}

func (c *Console) auditOne(r *http.Request) (any, error) {
	id, err := idOf(r, "activity")
	if err != nil {
		return nil, err
	}
	a, err := c.deps.Store.Activity(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return c.audit(r.Context(), []sql.Activity{a})
}

// audit reads everything in pages: its memory does not grow with the stock.
func (c *Console) audit(ctx context.Context, activities []sql.Activity) (Audit, error) {
	out := Audit{At: sale.At(c.now()), Balanced: true, Exact: true, Activities: []ActivityAudit{}, Queue: c.auditQueue(ctx)}
	for _, a := range activities {
		one, err := c.auditActivity(ctx, a.ID)
		if err != nil {
			return out, fmt.Errorf("cannot audit activity %s: %w", a.ID, err)
		}
		out.Balanced, out.Exact = out.Balanced && one.Balanced, out.Exact && one.Exact
		out.Activities = append(out.Activities, one)
	}
	return out, nil
}

// auditActivity compares the two sides between two looks that see the same; what moved in between is read again.
func (c *Console) auditActivity(ctx context.Context, id sale.ID) (ActivityAudit, error) {
	for range auditTries {
		b, err := c.openBook(ctx, id)
		if err != nil {
			return ActivityAudit{}, err
		}
		if b.redisSilent() {
			return b.close(ctx, (*book).checkRows)
		}
		err = b.walk(ctx)
		if err == nil {
			err = b.still(ctx)
		}
		if err == nil {
			return b.close(ctx, (*book).checkAll)
		}
		if !errors.Is(err, errMoved) {
			return ActivityAudit{}, err
		}
		select {
		case <-ctx.Done():
			return ActivityAudit{}, ctx.Err()
		case <-time.After(auditPause):
		}
	}
	b, err := c.openBook(ctx, id)
	if err != nil {
		return ActivityAudit{}, err
	}
	b.out.State = "moving"
	return b.close(ctx, (*book).checkBounds)
}

// book is one try at one activity.
type book struct {
	store  *sql.Store
	ledger *lua.Ledger
	cell   lua.Cell
	seen   sight
	items  map[sale.ID]*ItemAudit
	out    ActivityAudit
}

// sight is what must not have changed between two looks.
type sight struct {
	activity sql.Activity
	redis    lua.State
	sums     []sql.ItemSums
	toApply  map[sale.ID]int64
}

func (c *Console) openBook(ctx context.Context, id sale.ID) (*book, error) {
	b := &book{store: c.deps.Store, ledger: c.deps.Ledger, cell: cellOf(id), items: map[sale.ID]*ItemAudit{}}
	var err error
	if b.seen, err = b.look(ctx); err != nil {
		return nil, err
	}
	a := b.seen.activity
	b.out = ActivityAudit{ID: id, Title: a.Title, Status: a.Status, Limit: a.PerUserLimit, Faults: []Finding{}}
	if b.out.Shelf, err = b.store.ShelfSize(ctx, id); err != nil {
		return nil, err
	}
	b.out.Items = make([]ItemAudit, len(b.seen.sums))
	for i, s := range b.seen.sums {
		b.out.Items[i] = ItemAudit{Commodity: s.Commodity, Total: s.Total, LiveUnits: s.LiveUnits, Sold: s.Sold, SlotRows: s.SlotRows,
			FallbackLeft: s.FallbackLeft, ToApply: b.seen.toApply[s.Commodity], Remaining: b.seen.redis.Remaining[s.Commodity]}
		b.items[s.Commodity] = &b.out.Items[i]
	}
	return b, nil
}

func (b *book) look(ctx context.Context) (s sight, err error) {
	if s.redis, err = b.ledger.Inspect(ctx, b.cell); err != nil {
		return s, err
	}
	if s.activity, err = b.store.Activity(ctx, b.cell.Activity); err != nil {
		return s, err
	}
	if s.sums, err = b.store.Sums(ctx, b.cell.Activity); err != nil {
		return s, err
	}
	lots, err := b.store.LotsToApply(ctx, b.cell.Activity)
	s.toApply = map[sale.ID]int64{}
	for _, l := range lots {
		s.toApply[l.Commodity] += l.Units
	}
	return s, err
}

// redisSilent says that Redis has nothing to compare: not loaded yet, over, or its stock is not proven.
func (b *book) redisSilent() bool {
	s := b.seen.redis
	b.out.State = shownRedis(s, nil).State
	silent := !s.Opened || !s.Proven || s.Recovering || s.Epoch != b.seen.activity.Epoch
	if silent && b.out.State == "open" {
		b.out.State = "not proven" // the database has begun a recovery
	}
	return silent
}

// still says whether nothing has moved since the book was opened.
func (b *book) still(ctx context.Context) error {
	now, err := b.look(ctx)
	if err != nil {
		return err
	}
	was := b.seen
	same := now.redis.LedgerID == was.redis.LedgerID && now.redis.Reserved == was.redis.Reserved && now.redis.Epoch == was.redis.Epoch &&
		now.redis.Proven && !now.redis.Recovering && maps.Equal(now.redis.Remaining, was.redis.Remaining) &&
		now.activity.Epoch == was.activity.Epoch && maps.Equal(now.toApply, was.toApply) && len(now.sums) == len(was.sums)
	for i := 0; same && i < len(now.sums); i++ {
		same = now.sums[i] == was.sums[i]
	}
	if !same {
		return errMoved
	}
	b.out.State, b.out.Exact = "still", true
	return nil
}

// close runs the last checks and says whether all is well.
func (b *book) close(ctx context.Context, check func(*book, context.Context) error) (ActivityAudit, error) {
	if err := check(b, ctx); err != nil {
		return ActivityAudit{}, err
	}
	b.out.Balanced = len(b.out.Faults) == 0
	return b.out, nil
}

func (b *book) found(f Finding, text string, args ...any) {
	if len(b.out.Faults) >= findingsMax {
		b.out.More++
		return
	}
	f.Text = fmt.Sprintf(text, args...)
	b.out.Faults = append(b.out.Faults, f)
}
