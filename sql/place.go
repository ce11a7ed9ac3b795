package sql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"floodgate/sale"
)

// MaxPlace is the most rows of one Place call: with 16 columns a row they stay below every limit of parameters and packets.
const MaxPlace = 500

// placeRounds bounds how often a batch is split and tried again. A round is lost only where somebody else has placed one
// of its tokens, slots or numbers in the meantime, or a COMMIT was not answered.
const placeRounds = 8

// batch is one Place call on its way: what is still to insert, in the order of the caller, and what became of the rest.
type batch struct {
	activity, commodity sale.ID
	epoch               int64
	todo                []sale.Order
	twins               []sale.Order // second uses of a token in one batch: they get what the first one gets
	out                 Placed
}

// errShort says that the item has fewer units left than the batch takes.
var errShort = errors.New("fewer units are left")

// Place inserts rows of one item in one transaction. See [API]. A clean batch costs three statements and the COMMIT; the
// item's row, which every batch needs, is locked last and so for the shortest time. Where the call fails, nothing or all of it
// may have been written: the same rows may be given again, and are found.
func (s *Store) Place(ctx context.Context, activity, commodity sale.ID, epoch int64, rows []PlaceRequest) (Placed, error) {
	b := &batch{activity: activity, commodity: commodity, epoch: epoch, todo: slices.Clone(rows)}
	err := b.check()
	lockFirst := false
	for round := 0; err == nil && len(b.todo) > 0; round++ {
		if round == placeRounds {
			err = fmt.Errorf("%d rows still collide after %d rounds", len(b.todo), placeRounds)
			break
		}
		var rest []sale.Order
		rest, err = s.placeOnce(ctx, b, lockFirst)
		var unknown *commitError
		switch {
		case err == nil:
			b.placed(rest)
		case errors.Is(err, errShort):
			lockFirst = true // nobody can take the units between counting and taking them
			err = s.split(ctx, b)
		case isDuplicate(err) || errors.As(err, &unknown):
			err = s.split(ctx, b)
		}
	}
	if err != nil {
		return Placed{}, fmt.Errorf("cannot place %d orders of item %s of activity %s: %w", len(rows), commodity, activity, err)
	}
	b.settleTwins()
	return b.out, nil
}

// check refuses what the caller must not send, since a wrong row would break the sums for good.
func (b *batch) check() error {
	if len(b.todo) > MaxPlace {
		return fmt.Errorf("at most %d rows", MaxPlace)
	}
	at := now()
	for i := range b.todo {
		o := &b.todo[i]
		pending := o.State == sale.StatePending && len(o.Slots) == o.Quantity
		failed := o.State == sale.StateFailed && len(o.Slots) == 0
		switch {
		case o.Activity != b.activity || o.Commodity != b.commodity:
			return fmt.Errorf("order %s is of another item", o.No)
		case len(o.Token) != sale.TokenLen || o.User <= 0 || o.No <= 0 || o.Quantity < 1 || o.Quantity > sale.MaxQuantity:
			return fmt.Errorf("order %s: token, user, number or quantity out of range", o.No)
		case !pending && !failed:
			return fmt.Errorf("order %s: want a pending order with one slot a unit, or a failed one without slots", o.No)
		}
		o.Announced = false
		o.CreatedAt, o.UpdatedAt = cmp.Or(o.CreatedAt, at), cmp.Or(o.UpdatedAt, at)
	}
	return nil
}

// placeOnce is one transaction over b.todo. It returns the rows that did not fit (only with lockFirst), or: a duplicate,
// [errShort], [ErrFenced], [ErrNotFound], a [*commitError].
func (s *Store) placeOnce(ctx context.Context, b *batch, lockFirst bool) (rest []sale.Order, err error) {
	err = s.inTx(ctx, func(tx *gorm.DB) error {
		rows := b.todo
		if lockFirst {
			item, err := lockItem(tx, b.activity, b.commodity)
			if err != nil {
				return err
			}
			if item.Epoch != b.epoch {
				return ErrFenced
			}
			rows, rest = fit(b.todo, item.Total-item.FallbackLeft-item.Sold)
		}
		if len(rows) == 0 {
			return nil
		}
		if err := insertOrders(tx, rows); err != nil {
			return err
		}
		return takeStock(tx, b, units(rows))
	})
	return rest, err
}

// insertOrders inserts orders and slots with one statement each, in the order of the unique keys: two overlapping
// batches then wait for each other in one direction only, instead of deadlocking.
func insertOrders(tx *gorm.DB, orders []sale.Order) error {
	sorted := slices.Clone(orders)
	slices.SortFunc(sorted, func(a, b sale.Order) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Token, b.Token))
	})
	rows := make([]orderRow, len(sorted))
	var slots []slotRow
	for i := range sorted {
		o := &sorted[i]
		rows[i] = rowOf(o)
		for _, n := range o.Slots {
			slots = append(slots, slotRow{UserID: o.User, ActivityID: o.Activity, CommodityID: o.Commodity, Slot: n, OrderNo: o.No})
		}
	}
	if err := tx.Create(&rows).Error; err != nil {
		return err
	}
	for part := range slices.Chunk(slots, slotChunk) {
		if err := tx.Create(&part).Error; err != nil {
			return err
		}
	}
	return nil
}

// slotChunk is the most slots of one INSERT: five columns each stay below SQLite's 32,766 parameters. A batch has more
// only where most of it asks for many units at once.
const slotChunk = 5000

// takeStock is the fence and the guard in one statement: it matches the item's row only under the claimed epoch and only
// where the units are there. Failed rows take nothing, but are fenced all the same.
func takeStock(tx *gorm.DB, b *batch, n int64) error {
	statement := "UPDATE items SET sold = sold + ? WHERE activity_id = ? AND commodity_id = ? AND epoch = ?"
	args := []any{n, b.activity, b.commodity, b.epoch}
	if n > 0 {
		statement += " AND sold + ? <= total - fallback_left"
		args = append(args, n)
	}
	matched, err := exec(tx, statement, args...)
	if err != nil || matched == 1 {
		return err
	}
	var items []itemRow
	if err := tx.Where("activity_id = ? AND commodity_id = ?", b.activity, b.commodity).Find(&items).Error; err != nil {
		return err
	}
	switch {
	case len(items) == 0:
		return ErrNotFound
	case items[0].Epoch != b.epoch:
		return ErrFenced
	}
	return errShort
}

// fit takes, in order, every row that the room allows; failed rows need none.
func fit(rows []sale.Order, room int64) (fits, rest []sale.Order) {
	for _, o := range rows {
		need := units([]sale.Order{o})
		if need > 0 && need > room {
			rest = append(rest, o)
			continue
		}
		room -= need
		fits = append(fits, o)
	}
	return fits, rest
}

// units is what the rows take of the stock.
func units(rows []sale.Order) (n int64) {
	for i := range rows {
		if rows[i].State.Live() {
			n += int64(rows[i].Quantity)
		}
	}
	return n
}
