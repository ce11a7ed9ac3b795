package sql

import (
	"cmp"
	"context"
	"fmt"
)

// LogOperation appends a line to the operators' log; a missing time is now.
func (s *Store) LogOperation(ctx context.Context, o Operation) error {
	row := operationRow{At: cmp.Or(o.At, now()), Who: o.Who, Action: o.Action, ActivityID: o.Activity, BeforeText: o.Before, AfterText: o.After}
	if err := retry(ctx, func() error { return s.db.WithContext(ctx).Create(&row).Error }); err != nil {
		return fmt.Errorf("cannot log operation %s: %w", o.Action, err)
	}
	return nil
}

// Operations lists the operators' log, newest first; limit 1..500.
func (s *Store) Operations(ctx context.Context, limit int) ([]Operation, error) {
	var rows []operationRow
	if err := s.db.WithContext(ctx).Order("id DESC").Limit(min(max(limit, 1), pageLimit)).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("cannot list operations: %w", err)
	}
	out := make([]Operation, len(rows))
	for i, r := range rows {
		out[i] = Operation{At: r.At, Who: r.Who, Action: r.Action, Activity: r.ActivityID, Before: r.BeforeText, After: r.AfterText}
	}
	return out, nil
}
