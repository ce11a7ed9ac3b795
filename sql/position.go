package sql

import (
	"context"
	"fmt"

	"gorm.io/gorm/clause"
)

// RecordPlaced notes that everything before next of the topic's queue has been placed. An older position never replaces a newer one.
func (s *Store) RecordPlaced(ctx context.Context, topic, queue string, next int64) error {
	// Written without VALUES() and excluded, which the dialects spell differently.
	newer := clause.Assignments(map[string]any{
		"next_offset": clause.Expr{SQL: "CASE WHEN next_offset < ? THEN ? ELSE next_offset END", Vars: []any{next, next}},
	})
	conflict := clause.OnConflict{Columns: []clause.Column{{Name: "topic"}, {Name: "queue"}}, DoUpdates: newer}
	err := retry(ctx, func() error {
		return s.db.WithContext(ctx).Clauses(conflict).Create(&placedRow{Topic: topic, Queue: queue, NextOffset: next}).Error
	})
	if err != nil {
		return fmt.Errorf("cannot record position %d of queue %s of %s: %w", next, queue, topic, err)
	}
	return nil
}

// PlacedPositions reads the topic's recorded positions by queue.
func (s *Store) PlacedPositions(ctx context.Context, topic string) (map[string]int64, error) {
	var rows []placedRow
	if err := s.db.WithContext(ctx).Where("topic = ?", topic).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("cannot read the positions of %s: %w", topic, err)
	}
	positions := make(map[string]int64, len(rows))
	for _, r := range rows {
		positions[r.Queue] = r.NextOffset
	}
	return positions, nil
}
