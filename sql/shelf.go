package sql

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"floodgate/sale"
)

// shelfRow is a message that was taken off its queue, so that those behind it go on, while its activity's stock is not proven.
type shelfRow struct {
	RequestToken sale.Token
	UserID       sale.ID
	ActivityID   sale.ID
	Body         []byte
}

func (shelfRow) TableName() string { return "shelf" }

// Shelve puts messages aside durably. The same message again changes nothing.
func (s *Store) Shelve(ctx context.Context, messages []sale.Message) error {
	rows := make([]shelfRow, len(messages))
	for i := range messages {
		m := &messages[i]
		rows[i] = shelfRow{m.Token, m.User, m.Activity, m.Append(nil)}
	}
	// Assigning a column to itself is the one spelling of "do nothing" that both dialects count right.
	same := clause.OnConflict{DoUpdates: clause.Assignments(map[string]any{"activity_id": gorm.Expr("activity_id")}),
		Columns: []clause.Column{{Name: "user_id"}, {Name: "request_token"}}}
	err := retry(ctx, func() error { return s.db.WithContext(ctx).Clauses(same).Create(&rows).Error })
	if err != nil {
		return fmt.Errorf("cannot shelve %d messages: %w", len(messages), err)
	}
	return nil
}

// Shelved reads at most limit messages of the activity that were put aside.
func (s *Store) Shelved(ctx context.Context, activity sale.ID, limit int) ([]sale.Message, error) {
	var rows []shelfRow
	if err := s.db.WithContext(ctx).Where("activity_id = ?", activity).Limit(limit).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("cannot read the shelf of activity %s: %w", activity, err)
	}
	messages := make([]sale.Message, len(rows))
	for i, r := range rows {
		m, err := sale.ReadMessage(r.Body)
		if err != nil {
			return nil, fmt.Errorf("shelf of activity %s: %w", activity, err)
		}
		messages[i] = m
	}
	return messages, nil
}

// ShelvedActivities lists activities that have messages on the shelf, in no order; at most 500.
func (s *Store) ShelvedActivities(ctx context.Context) ([]sale.ID, error) {
	var ids []sale.ID
	if err := s.db.WithContext(ctx).Model(&shelfRow{}).Distinct("activity_id").Limit(pageLimit).Pluck("activity_id", &ids).Error; err != nil {
		return nil, fmt.Errorf("cannot list the shelf's activities: %w", err)
	}
	return ids, nil
}

// Unshelve removes messages that have their row now.
func (s *Store) Unshelve(ctx context.Context, tokens ...sale.Token) error {
	for _, t := range tokens {
		claims, err := t.Peek()
		if err != nil {
			return err
		}
		if err := s.db.WithContext(ctx).Where("user_id = ? AND request_token = ?", claims.User, t).Delete(&shelfRow{}).Error; err != nil {
			return fmt.Errorf("cannot clear the shelf: %w", err)
		}
	}
	return nil
}

// Current lists the activities that Redis holds or should hold: all whose end, pay window and keeping time are not over, and those
// that are created; at most limit, newest first.
func (s *Store) Current(ctx context.Context, at sale.Millis, limit int) ([]Activity, error) {
	var rows []activityRow
	err := s.db.WithContext(ctx).Where("ends_at + pay_window_ms + ? > ?", sale.KeepKeys.Milliseconds(), at).
		Order("id DESC").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("cannot list current activities: %w", err)
	}
	return s.withItems(ctx, rows)
}
