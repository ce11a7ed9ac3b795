package sql

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"floodgate/sale"
)

// Opening reads, in one snapshot, an activity and the units of each item that Redis is opened with: what is not sold, not the
// fallback's, and not in a lot that is still to be applied. Restock adds the lots: opening with them too would sell them twice.
func (s *Store) Opening(ctx context.Context, id sale.ID) (a Activity, remaining map[sale.ID]int64, err error) {
	var lots []lotRow
	err = s.snapshot(ctx, func(tx *gorm.DB) error {
		in := *s
		in.db = tx
		if a, err = in.Activity(ctx, id); err != nil {
			return err
		}
		return tx.Where("activity_id = ? AND applied = ?", id, false).Find(&lots).Error
	})
	if err != nil {
		return Activity{}, nil, fmt.Errorf("cannot read what activity %s opens with: %w", id, err)
	}
	remaining = make(map[sale.ID]int64, len(a.States))
	for _, i := range a.States {
		remaining[i.Commodity] = i.Total - i.Sold - i.FallbackLeft
	}
	for _, l := range lots {
		remaining[l.CommodityID] -= l.Units
	}
	return a, remaining, nil
}

// MarkOpened makes a created activity live. One that has moved on stays as it is: who opens it late must not lift a pause.
func (s *Store) MarkOpened(ctx context.Context, id sale.ID) error {
	err := retry(ctx, func() error {
		_, err := exec(s.db.WithContext(ctx), "UPDATE activities SET status = ?, updated_at = ? WHERE id = ? AND status = ?", sale.Live, now(), id, sale.Created)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot mark activity %s as open: %w", id, err)
	}
	return nil
}
