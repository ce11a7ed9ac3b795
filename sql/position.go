package sql

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// RecordPlaced notes that everything before next of the topic's queue has been placed. An older position never replaces a newer one.
func (s *Store) RecordPlaced(ctx context.Context, topic, queue string, next int64) error {
	return s.RecordPositions(ctx, topic, map[string]int64{queue: next})
}

// RecordPositions is RecordPlaced for several queues of a topic in one transaction, in the order of their names, so that workers wait
// for each other in one direction only.
func (s *Store) RecordPositions(ctx context.Context, topic string, next map[string]int64) error {
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		for _, queue := range slices.Sorted(maps.Keys(next)) {
			if err := notePosition(tx, placedRow{Topic: topic, Queue: queue, NextOffset: next[queue]}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot record positions of %d queues of %s: %w", len(next), topic, err)
	}
	return nil
}

func notePosition(tx *gorm.DB, row placedRow) error {
	// Written without VALUES() and excluded, which the dialects spell differently.
	newer := clause.Assignments(map[string]any{
		"next_offset": clause.Expr{SQL: "CASE WHEN next_offset < ? THEN ? ELSE next_offset END", Vars: []any{row.NextOffset, row.NextOffset}},
	})
	conflict := clause.OnConflict{Columns: []clause.Column{{Name: "topic"}, {Name: "queue"}}, DoUpdates: newer}
	return tx.Clauses(conflict).Create(&row).Error
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
