package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// stockBody adds units. The operation's id makes it safe to repeat: the same one adds nothing again. Where it is left out one is made,
// and told in the answer.
type stockBody struct {
	Units     int64  `json:"units"`
	Operation string `json:"operation,omitempty"`
}

// Added is the answer of adding stock.
type Added struct {
	Operation string `json:"operation"`
	Change
}

// operationID is what Redis and the database keep: the alphabet of request tokens.
var operationID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// addStock counts the units in the database; a worker brings them to Redis, at most half a second later, once.
func (c *Console) addStock(r *http.Request) (any, error) {
	ctx := r.Context()
	before, item, err := c.itemOf(r)
	if err != nil {
		return nil, err
	}
	var b stockBody
	if err := body(r, &b); err != nil {
		return nil, err
	}
	b.Operation = cmp.Or(b.Operation, "op-"+strings.ToLower(rand.Text()))
	if !operationID.MatchString(b.Operation) {
		return nil, badRequest("operation: want 1 to 64 letters, digits, - or _")
	}
	if before.Status == sale.Ended {
		return nil, conflict("activity %s has ended", before.ID)
	}
	lot, err := c.deps.Store.AddLot(ctx, sql.Lot{Operation: b.Operation, Activity: before.ID, Commodity: item.Commodity, Units: b.Units})
	if err != nil {
		return nil, err
	}
	after, err := c.deps.Store.Activity(ctx, before.ID)
	if err != nil {
		return nil, err
	}
	total := after.Item(item.Commodity).Total
	out := Added{Operation: b.Operation, Change: Change{Changed: total != item.Total, Before: totalOf(item.Commodity, item.Total), After: totalOf(item.Commodity, total)}}
	c.record(r, &out.Change, sql.Operation{Action: "add-stock", Activity: before.ID, Before: out.Before, After: out.After + " by " + b.Operation})
	c.awaitLot(ctx, after, lot, &out.Change)
	out.Activity = c.show(ctx, after)
	return out, nil
}

func totalOf(commodity sale.ID, total int64) string {
	return fmt.Sprintf("item %s: total %d", commodity, total)
}

// awaitLot waits until Redis has the lot.
func (c *Console) awaitLot(ctx context.Context, a sql.Activity, lot sql.Lot, out *Change) {
	if a.Status == sale.Created {
		out.Applied = true // it is opened with it
		return
	}
	err := c.poll(ctx, func(ctx context.Context) (bool, error) {
		lots, err := c.deps.Store.LotsToApply(ctx, a.ID)
		return err == nil && !slices.ContainsFunc(lots, func(l sql.Lot) bool { return l.Operation == lot.Operation }), err
	})
	out.Applied = err == nil
	if err != nil {
		out.note(fmt.Sprintf("it is in the database, and no worker has brought it to Redis yet: %v", err))
	}
}

// itemOf reads the activity and the item of the path.
func (c *Console) itemOf(r *http.Request) (sql.Activity, sale.Item, error) {
	id, err := idOf(r, "activity")
	if err != nil {
		return sql.Activity{}, sale.Item{}, err
	}
	commodity, err := idOf(r, "commodity")
	if err != nil {
		return sql.Activity{}, sale.Item{}, err
	}
	a, err := c.deps.Store.Activity(r.Context(), id)
	if err != nil {
		return a, sale.Item{}, err
	}
	item := a.Item(commodity)
	if item == nil {
		return a, sale.Item{}, fmt.Errorf("item %s of activity %s: %w", commodity, id, sql.ErrNotFound)
	}
	return a, *item, nil
}

type priceBody struct {
	Price *sale.Cents `json:"price"`
}

// setPrice changes an item's price for reservations to come; what is reserved keeps its own.
func (c *Console) setPrice(r *http.Request) (any, error) {
	ctx := r.Context()
	before, item, err := c.itemOf(r)
	if err != nil {
		return nil, err
	}
	var b priceBody
	if err := body(r, &b); err != nil {
		return nil, err
	}
	if b.Price == nil {
		return nil, badRequest(`price: want an amount like "99.00"`)
	}
	if err := c.deps.Store.SetPrice(ctx, before.ID, item.Commodity, *b.Price); err != nil {
		return nil, err
	}
	after, err := c.deps.Store.Activity(ctx, before.ID)
	if err != nil {
		return nil, err
	}
	out := Change{Changed: item.Price != *b.Price, Before: priceOf(item.Commodity, item.Price), After: priceOf(item.Commodity, *b.Price)}
	c.record(r, &out, sql.Operation{Action: "price", Activity: before.ID, Before: out.Before, After: out.After})
	c.await(ctx, after, &out)
	out.Activity = c.show(ctx, after)
	return out, nil
}

func priceOf(commodity sale.ID, price sale.Cents) string {
	return fmt.Sprintf("item %s: price %s", commodity, price)
}

// cellOf is the one cell of an activity.
func cellOf(id sale.ID) lua.Cell { return lua.Cell{Activity: id} }
