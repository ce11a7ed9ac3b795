package sql

import (
	"context"
	dbsql "database/sql"
	"fmt"

	"gorm.io/gorm"

	"floodgate/sale"
)

// ItemSums is what the database alone says of an item, counted from the rows and not from the counters. Promise 1 is
// LiveUnits <= Total - FallbackLeft; the books are right where Sold == LiveUnits == SlotRows.
type ItemSums struct {
	Commodity    sale.ID
	Total        int64
	Sold         int64 // the item row's counter
	LiveUnits    int64 // quantities of the rows that are pending or paid
	SlotRows     int64 // slots that are held
	FallbackLeft int64
}

// Sums counts an activity's items in one snapshot, in the order of the activity's items; audit.sql is the same for people.
// [ErrNotFound] where the activity has no items.
func (s *Store) Sums(ctx context.Context, activity sale.ID) ([]ItemSums, error) {
	var sums []ItemSums
	err := s.snapshot(ctx, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT i.commodity_id AS commodity, i.total, i.sold, i.fallback_left,
			COALESCE((SELECT SUM(o.quantity) FROM orders o WHERE o.activity_id = i.activity_id AND o.commodity_id = i.commodity_id AND o.state IN (0, 1)), 0) AS live_units,
			(SELECT COUNT(*) FROM slots s WHERE s.activity_id = i.activity_id AND s.commodity_id = i.commodity_id) AS slot_rows
			FROM items i WHERE i.activity_id = ? ORDER BY i.position`, activity).Scan(&sums).Error
	})
	if err == nil && len(sums) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("cannot count activity %s: %w", activity, err)
	}
	return sums, nil
}

// overLimitShown is how many users OverLimit names: enough to start looking.
const overLimitShown = 10

// OverLimit names the first users, by id, whose live orders of one item hold more units than the limit.
func (s *Store) OverLimit(ctx context.Context, activity sale.ID, limit int) ([]sale.ID, error) {
	var users []sale.ID
	err := s.db.WithContext(ctx).Raw(`SELECT DISTINCT user_id FROM (SELECT user_id FROM orders WHERE activity_id = ? AND state IN (0, 1)
		GROUP BY user_id, commodity_id HAVING SUM(quantity) > ?) AS holders ORDER BY user_id LIMIT ?`, activity, limit, overLimitShown).Scan(&users).Error
	if err != nil {
		return nil, fmt.Errorf("cannot look for users over the limit of activity %s: %w", activity, err)
	}
	return users, nil
}

// snapshot runs reads that see one instant: READ COMMITTED would count the orders of one moment against the slots of another.
func (s *Store) snapshot(ctx context.Context, f func(tx *gorm.DB) error) error {
	opt := &dbsql.TxOptions{ReadOnly: true}
	if s.driver == MySQL {
		opt.Isolation = dbsql.LevelRepeatableRead
	}
	return s.db.WithContext(ctx).Transaction(f, opt)
}
