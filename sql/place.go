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

// placeRounds bounds how often a batch that collided is tried again. A second collision needs a placer that holds one of
// the same keys and waits for the item's row; once it has collided itself it locks that row first too.
const placeRounds = 6

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
// item's row, which every batch needs, is locked last and so for the shortest time. What collides is placed carefully
// instead. Where the call fails, nothing or all of it may have been written: the same rows may be given again, and are found.
func (s *Store) Place(ctx context.Context, activity, commodity sale.ID, epoch int64, rows []PlaceRequest) (Placed, error) {
	b := batch{activity: activity, commodity: commodity, epoch: epoch, todo: slices.Clone(rows)}
	if err := b.check(); err != nil {
		return Placed{}, fmt.Errorf("cannot place: %w", err)
	}
	if len(rows) == 0 {
		return Placed{}, nil
	}
	out, err := s.placeClean(ctx, b)
	for round := 0; collided(err) && round < placeRounds; round++ {
		if err = pause(ctx, round, err); err == nil {
			out, err = s.placeCarefully(ctx, b)
		}
	}
	if err != nil {
		return Placed{}, fmt.Errorf("cannot place %d orders of item %s of activity %s: %w", len(rows), commodity, activity, err)
	}
	return out, nil
}

// collided says that the batch met another one, too little stock, or a COMMIT that was not answered: looking closer tells.
func collided(err error) bool {
	var unknown *commitError
	return isDuplicate(err) || isTransient(err) || errors.Is(err, errShort) || errors.As(err, &unknown)
}

// placeClean places a batch of which every row is new and fits.
func (s *Store) placeClean(ctx context.Context, b batch) (Placed, error) {
	err := s.once(ctx, func(tx *gorm.DB) error { return b.write(tx, b.todo) })
	return Placed{Inserted: b.todo}, err
}

// placeCarefully locks the item's row first. From there on no other batch of the item commits, and every COMMIT whose
// answer was lost has come to its end: what stands is read, taken out, and the rest is inserted as far as it fits.
func (s *Store) placeCarefully(ctx context.Context, b batch) (out Placed, err error) {
	err = s.once(ctx, func(tx *gorm.DB) error {
		item, err := lockItem(tx, b.activity, b.commodity)
		if err != nil {
			return err
		}
		sorted, err := split(tx, b)
		if err != nil {
			return err
		}
		var fits []sale.Order
		fits, sorted.out.NoStock = fit(sorted.todo, item.Total-item.FallbackLeft-item.Sold)
		if len(sorted.todo) > 0 && item.Epoch != b.epoch {
			return ErrFenced
		}
		if len(fits) > 0 {
			err = b.write(tx, fits)
		}
		sorted.out.Inserted = append(sorted.out.Inserted, fits...)
		out = sorted.settled()
		return err
	})
	return out, err
}

// write inserts the rows and takes their units.
func (b *batch) write(tx *gorm.DB, rows []sale.Order) error {
	if err := insertOrders(tx, rows); err != nil {
		return err
	}
	return takeStock(tx, b, units(rows))
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
	slices.SortFunc(slots, func(a, b slotRow) int {
		return cmp.Or(cmp.Compare(a.UserID, b.UserID), cmp.Compare(a.Slot, b.Slot))
	})
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
