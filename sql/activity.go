package sql

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"floodgate/sale"
)

const (
	pageLimit = 500 // rows a page of every list that a caller walks
	idTries   = 100 // activities that may be created in one millisecond
)

// generatedIDs ends the range of ids that are made here: milliseconds until the year 5138. Ids above it were chosen by people.
const generatedIDs = 100_000_000_000_000

// forUpdate makes a SELECT wait for the transactions that are changing the rows, and keeps them until its own ends.
// SQLite leaves it out: its transactions hold the one write lock from their begin.
var forUpdate = clause.Locking{Strength: clause.LockingStrengthUpdate}

// CreateActivity inserts activity and items. See [API].
func (s *Store) CreateActivity(ctx context.Context, a sale.Activity) (sale.ID, error) {
	if err := a.Check(); err != nil {
		return 0, err
	}
	if a.ID < 0 {
		return 0, sale.ErrID
	}
	if a.ID > 0 {
		return a.ID, s.insertActivity(ctx, a)
	}
	for range idTries {
		var newest sale.ID
		if err := s.db.WithContext(ctx).Raw("SELECT COALESCE(MAX(id), 0) FROM activities WHERE id < ?", int64(generatedIDs)).Scan(&newest).Error; err != nil {
			return 0, fmt.Errorf("cannot number a new activity: %w", err)
		}
		a.ID = max(sale.ID(now()), newest+1)
		if err := s.insertActivity(ctx, a); !errors.Is(err, ErrExists) {
			return a.ID, err
		}
	}
	return 0, fmt.Errorf("cannot number a new activity: %w", ErrExists)
}

func (s *Store) insertActivity(ctx context.Context, a sale.Activity) error {
	at := now()
	row := activityRow{ID: a.ID, Title: a.Title, StartsAt: a.StartsAt, EndsAt: a.EndsAt, PerUserLimit: a.PerUserLimit,
		PayWindowMs: a.PayWindow.Milliseconds(), Captcha: a.Captcha, Status: sale.Created, CreatedAt: at, UpdatedAt: at}
	var items []itemRow
	for n, i := range a.Items {
		items = append(items, itemRow{ActivityID: a.ID, CommodityID: i.Commodity, Position: n, Title: i.Title, PriceCents: i.Price,
			Total: i.Total, FallbackQuota: i.FallbackQuota, FallbackLeft: i.FallbackQuota, Epoch: 1})
	}
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		return tx.Create(&items).Error
	})
	if isDuplicate(err) {
		err = ErrExists // the cause names keys and values
	}
	if err != nil {
		return fmt.Errorf("cannot create activity %s: %w", a.ID, err)
	}
	return nil
}

// Activity reads one activity with its items' states, or [ErrNotFound].
func (s *Store) Activity(ctx context.Context, id sale.ID) (Activity, error) {
	var rows []activityRow
	if err := s.db.WithContext(ctx).Where("id = ?", id).Find(&rows).Error; err != nil {
		return Activity{}, fmt.Errorf("cannot read activity %s: %w", id, err)
	}
	all, err := s.withItems(ctx, rows)
	if err != nil {
		return Activity{}, err
	}
	if len(all) == 0 {
		return Activity{}, fmt.Errorf("activity %s: %w", id, ErrNotFound)
	}
	return all[0], nil
}

// Activities lists by id descending. See [API]; limit is cut to 1..500.
func (s *Store) Activities(ctx context.Context, before sale.ID, limit int, statuses ...sale.Status) ([]Activity, error) {
	q := s.db.WithContext(ctx).Order("id DESC").Limit(min(max(limit, 1), pageLimit))
	if before > 0 {
		q = q.Where("id < ?", before)
	}
	if len(statuses) > 0 {
		q = q.Where("status IN ?", statuses)
	}
	var rows []activityRow
	if err := q.Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("cannot list activities: %w", err)
	}
	return s.withItems(ctx, rows)
}

func (s *Store) withItems(ctx context.Context, rows []activityRow) ([]Activity, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]sale.ID, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	var items []itemRow
	if err := s.db.WithContext(ctx).Where("activity_id IN ?", ids).Order("activity_id, position").Find(&items).Error; err != nil {
		return nil, fmt.Errorf("cannot read items: %w", err)
	}
	byActivity := map[sale.ID][]itemRow{}
	for _, i := range items {
		byActivity[i.ActivityID] = append(byActivity[i.ActivityID], i)
	}
	out := make([]Activity, len(rows))
	for i := range rows {
		out[i] = rows[i].activity(byActivity[rows[i].ID])
	}
	return out, nil
}

// moves are the transitions of an operator's status.
var moves = map[sale.Status][]sale.Status{
	sale.Created: {sale.Live, sale.Ended},
	sale.Live:    {sale.Paused, sale.Ended},
	sale.Paused:  {sale.Live, sale.Ended},
}

// SetStatus moves the status and returns the one before. See [API].
func (s *Store) SetStatus(ctx context.Context, id sale.ID, to sale.Status) (sale.Status, error) {
	var before sale.Status
	err := s.changeActivity(ctx, id, func(tx *gorm.DB, row *activityRow) error {
		before = row.Status
		if before == to {
			return nil
		}
		for _, next := range moves[before] {
			if next == to {
				_, err := exec(tx, "UPDATE activities SET status = ?, updated_at = ? WHERE id = ?", to, now(), id)
				return err
			}
		}
		return fmt.Errorf("%s cannot become %s: %w", before, to, ErrConflict)
	})
	if err != nil {
		return before, fmt.Errorf("cannot set the status of activity %s: %w", id, err)
	}
	return before, nil
}

// SetWindow moves start and end; [ErrConflict] once ended, a [*sale.FieldError] where the end is not after the start.
func (s *Store) SetWindow(ctx context.Context, id sale.ID, starts, ends sale.Millis) error {
	if ends <= starts || starts <= 0 {
		return &sale.FieldError{Field: "endsAt", Problem: "must be after startsAt"}
	}
	err := s.changeActivity(ctx, id, func(tx *gorm.DB, row *activityRow) error {
		if row.Status == sale.Ended {
			return fmt.Errorf("it has ended: %w", ErrConflict)
		}
		_, err := exec(tx, "UPDATE activities SET starts_at = ?, ends_at = ?, updated_at = ? WHERE id = ?", starts, ends, now(), id)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot move the window of activity %s: %w", id, err)
	}
	return nil
}

func (s *Store) changeActivity(ctx context.Context, id sale.ID, f func(tx *gorm.DB, row *activityRow) error) error {
	return s.inTx(ctx, func(tx *gorm.DB) error {
		var rows []activityRow
		if err := tx.Clauses(forUpdate).Where("id = ?", id).Find(&rows).Error; err != nil {
			return err
		}
		if len(rows) == 0 {
			return ErrNotFound
		}
		return f(tx, &rows[0])
	})
}

// SetPrice changes an item's price for reservations to come; orders keep theirs.
func (s *Store) SetPrice(ctx context.Context, id, commodity sale.ID, price sale.Cents) error {
	if price < 0 || price > sale.MaxPrice {
		return &sale.FieldError{Field: "price", Problem: fmt.Sprintf(`want "0.00" to "%s"`, sale.MaxPrice)}
	}
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		n, err := exec(tx, "UPDATE items SET price_cents = ? WHERE activity_id = ? AND commodity_id = ?", price, id, commodity)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot set the price of item %s of activity %s: %w", commodity, id, err)
	}
	return nil
}
