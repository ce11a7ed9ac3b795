package sql

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"floodgate/sale"
)

// doubtsShown is how many doubts of a kind are named: enough to start looking.
const doubtsShown = 10

// Doubt is an order or a slot that contradicts the other.
type Doubt struct {
	User      sale.ID
	Commodity sale.ID
	OrderNo   sale.ID
	Token     sale.Token // "" where the order is not there
	Units     int64      // of the live order; 0: there is no live order for the slots
	Slots     int64      // rows of slots that the order holds
}

// Doubts names the first live orders that do not hold one slot a unit, and the first slots that no live order holds. It reads
// all orders of the activity: for audits.
func (s *Store) Doubts(ctx context.Context, activity sale.ID) ([]Doubt, error) {
	var short, stray []Doubt
	err := s.snapshot(ctx, func(tx *gorm.DB) error {
		if err := tx.Raw(`SELECT * FROM (SELECT o.user_id AS user, o.commodity_id AS commodity, o.order_no, o.request_token AS token, o.quantity AS units,
			(SELECT COUNT(*) FROM slots s WHERE s.user_id = o.user_id AND s.activity_id = o.activity_id AND s.commodity_id = o.commodity_id AND s.order_no = o.order_no) AS slots
			FROM orders o WHERE o.activity_id = ? AND o.state IN (0, 1)) AS held WHERE units <> slots ORDER BY order_no LIMIT ?`,
			activity, doubtsShown).Scan(&short).Error; err != nil {
			return err
		}
		return tx.Raw(`SELECT s.user_id AS user, s.commodity_id AS commodity, s.order_no, COUNT(*) AS slots FROM slots s
			LEFT JOIN orders o ON o.order_no = s.order_no AND o.state IN (0, 1) AND o.user_id = s.user_id AND o.commodity_id = s.commodity_id
			WHERE s.activity_id = ? AND o.order_no IS NULL GROUP BY s.user_id, s.commodity_id, s.order_no LIMIT ?`,
			activity, doubtsShown).Scan(&stray).Error
	})
	if err != nil {
		return nil, fmt.Errorf("cannot compare orders and slots of activity %s: %w", activity, err)
	}
	return append(short, stray...), nil
}

// ShelfSize counts the messages of the activity that are put aside.
func (s *Store) ShelfSize(ctx context.Context, activity sale.ID) (n int64, err error) {
	if err = s.db.WithContext(ctx).Model(&shelfRow{}).Where("activity_id = ?", activity).Count(&n).Error; err != nil {
		return 0, fmt.Errorf("cannot count the shelf of activity %s: %w", activity, err)
	}
	return n, nil
}
