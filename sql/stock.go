package sql

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"gorm.io/gorm"

	"floodgate/sale"
)

// operationForm is what an operation id may be: it also names a field in Redis.
var operationForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// AddLot counts added units in the item's total, once an operation id. The lot that is returned carries the epoch it was
// counted under; a caller that names an epoch (not 0) gets [ErrFenced] where another one stands. The same operation id
// with another item or other units is [ErrConflict].
func (s *Store) AddLot(ctx context.Context, l Lot) (Lot, error) {
	if l.Operation == "" || l.Units < 1 || l.Units > sale.MaxTotal {
		return Lot{}, &sale.FieldError{Field: "units", Problem: fmt.Sprintf("want 1 to %d units and an operation id", sale.MaxTotal)}
	}
	if !operationForm.MatchString(l.Operation) {
		return Lot{}, &sale.FieldError{Field: "operation", Problem: "want 1 to 64 letters, digits, - or _"}
	}
	var out Lot
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		item, err := lockItem(tx, l.Activity, l.Commodity) // first: two tries of one operation take turns here
		if err != nil {
			return err
		}
		var rows []lotRow
		if err := tx.Where("operation = ?", l.Operation).Find(&rows).Error; err != nil {
			return err
		}
		if len(rows) == 1 {
			out = rows[0].lot()
			if out.Activity != l.Activity || out.Commodity != l.Commodity || out.Units != l.Units {
				return fmt.Errorf("operation %q added something else: %w", l.Operation, ErrConflict)
			}
			return nil
		}
		out, err = insertLot(tx, item, l)
		return err
	})
	if isDuplicate(err) {
		err = fmt.Errorf("operation %q added something else: %w", l.Operation, ErrConflict) // of another item: this one's row was locked
	}
	if err != nil {
		return Lot{}, fmt.Errorf("cannot add to item %s of activity %s: %w", l.Commodity, l.Activity, err)
	}
	return out, nil
}

func insertLot(tx *gorm.DB, item itemRow, l Lot) (Lot, error) {
	if l.Epoch != 0 && l.Epoch != item.Epoch {
		return Lot{}, ErrFenced
	}
	if item.Total+l.Units > sale.MaxTotal {
		return Lot{}, &sale.FieldError{Field: "units", Problem: fmt.Sprintf("the total would pass %d units", sale.MaxTotal)}
	}
	row := lotRow{Operation: l.Operation, ActivityID: l.Activity, CommodityID: l.Commodity, Units: l.Units, Epoch: item.Epoch, CreatedAt: now()}
	if err := tx.Create(&row).Error; err != nil {
		return Lot{}, err
	}
	_, err := exec(tx, "UPDATE items SET total = total + ? WHERE activity_id = ? AND commodity_id = ?", l.Units, l.Activity, l.Commodity)
	return row.lot(), err
}

func lockItem(tx *gorm.DB, activity, commodity sale.ID) (itemRow, error) {
	var rows []itemRow
	err := tx.Clauses(forUpdate).Where("activity_id = ? AND commodity_id = ?", activity, commodity).Find(&rows).Error
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("item %s of activity %s: %w", commodity, activity, ErrNotFound)
	}
	if err != nil {
		return itemRow{}, err
	}
	return rows[0], nil
}

// LotsToApply lists the activity's lots that Redis has not counted yet, oldest first; at most 500.
func (s *Store) LotsToApply(ctx context.Context, activity sale.ID) ([]Lot, error) {
	var rows []lotRow
	err := s.db.WithContext(ctx).Where("activity_id = ? AND applied = ?", activity, false).Order("created_at, operation").Limit(pageLimit).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("cannot list the lots of activity %s: %w", activity, err)
	}
	lots := make([]Lot, len(rows))
	for i := range rows {
		lots[i] = rows[i].lot()
	}
	return lots, nil
}

// MarkLotsApplied notes that Redis counts these lots; unknown ones are left out.
func (s *Store) MarkLotsApplied(ctx context.Context, operations ...string) error {
	err := s.inTx(ctx, func(tx *gorm.DB) error { return markLots(tx, operations) })
	if err != nil {
		return fmt.Errorf("cannot mark lots as applied: %w", err)
	}
	return nil
}

func markLots(tx *gorm.DB, operations []string) error {
	for part := range slices.Chunk(operations, pageLimit) {
		if _, err := exec(tx, "UPDATE lots SET applied = ? WHERE operation IN ?", true, part); err != nil {
			return err
		}
	}
	return nil
}

// lockEpoch waits for every transaction that is moving the activity's stock and returns the epoch of its items, -1 where
// they differ (which no method here leaves behind).
func lockEpoch(tx *gorm.DB, activity sale.ID) (same, highest int64, err error) {
	var epochs []int64
	err = tx.Model(&itemRow{}).Clauses(forUpdate).Where("activity_id = ?", activity).Order("commodity_id").Pluck("epoch", &epochs).Error
	if err == nil && len(epochs) == 0 {
		err = fmt.Errorf("activity %s: %w", activity, ErrNotFound)
	}
	if err != nil {
		return 0, 0, err
	}
	same, highest = slices.Min(epochs), slices.Max(epochs)
	if same != highest {
		same = -1
	}
	return same, highest, nil
}

// RaiseEpoch adds one to the epoch of every item and returns the new one: when it returns, every transaction of an older
// epoch has committed or never will. After an error it may have been raised all the same; raise again.
func (s *Store) RaiseEpoch(ctx context.Context, activity sale.ID) (int64, error) {
	var epoch int64
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		_, highest, err := lockEpoch(tx, activity)
		if err != nil {
			return err
		}
		epoch = highest + 1
		_, err = exec(tx, "UPDATE items SET epoch = ? WHERE activity_id = ?", epoch, activity)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot raise the epoch of activity %s: %w", activity, err)
	}
	return epoch, nil
}

// HoldsEpoch says whether the epoch is still the database's, after every transaction that might be changing it.
func (s *Store) HoldsEpoch(ctx context.Context, activity sale.ID, epoch int64) (bool, error) {
	var same int64
	err := s.inTx(ctx, func(tx *gorm.DB) (err error) {
		same, _, err = lockEpoch(tx, activity)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot read the epoch of activity %s: %w", activity, err)
	}
	return same == epoch, nil
}

// RecordLive notes that the epoch went live and that its rebuild counted the lots. See [API].
func (s *Store) RecordLive(ctx context.Context, activity sale.ID, epoch int64, countedLots []string) error {
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		same, _, err := lockEpoch(tx, activity)
		if err != nil {
			return err
		}
		if same != epoch {
			return ErrFenced
		}
		if _, err := exec(tx, "UPDATE items SET live_epoch = ? WHERE activity_id = ?", epoch, activity); err != nil {
			return err
		}
		return markLots(tx, countedLots)
	})
	if err != nil {
		return fmt.Errorf("cannot record epoch %d of activity %s as live: %w", epoch, activity, err)
	}
	return nil
}
