package mq

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"floodgate/sale"
)

// maxLetters is the most dead letters of one List.
const maxLetters = 1000

// bury moves unreadable rows to the dead letters, in one transaction, so that a crash leaves each in exactly one place.
func (t *Table) bury(ctx context.Context, bad []unreadable) error {
	if len(bad) == 0 {
		return nil
	}
	err := t.inTx(ctx, func(tx *sql.Tx) error {
		for _, u := range bad {
			if err := addLetter(ctx, tx, u.body, u.reason); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "DELETE FROM order_queue WHERE id = ?", u.offset); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot put %d unreadable messages aside: %w", len(bad), err)
	}
	t.metrics.dead.Add(float64(len(bad)))
	t.logger.Error("unreadable messages were put among the dead letters", "count", len(bad), "first", bad[0].reason)
	return nil
}

func addLetter(ctx context.Context, on execer, body []byte, reason string) error {
	_, err := on.ExecContext(ctx, "INSERT INTO dead_letters (body, reason, at) VALUES (?, ?, ?)", body, reason, sale.At(time.Now()))
	return err
}

// inTx runs f in a transaction; an error of f or of the commit rolls it back.
func (t *Table) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Add puts a message aside for good.
func (t *Table) Add(ctx context.Context, m sale.Message, reason string) error {
	if err := addLetter(ctx, t.db, m.Append(nil), reason); err != nil {
		return fmt.Errorf("cannot put a message aside: %w", err)
	}
	t.metrics.dead.Inc()
	return nil
}

// List gives the newest letters first.
func (t *Table) List(ctx context.Context, limit int) ([]DeadLetter, error) {
	if limit < 1 || limit > maxLetters {
		return nil, fmt.Errorf("cannot list %d dead letters: want 1 to %d", limit, maxLetters)
	}
	rows, err := t.db.QueryContext(ctx, "SELECT id, body, reason, at FROM dead_letters ORDER BY id DESC LIMIT ?", limit)
	if err != nil {
		return nil, fmt.Errorf("cannot list dead letters: %w", err)
	}
	defer rows.Close()
	var letters []DeadLetter
	for rows.Next() {
		var l DeadLetter
		var body []byte
		if err := rows.Scan(&l.ID, &body, &l.Reason, &l.At); err != nil {
			return nil, fmt.Errorf("cannot list dead letters: %w", err)
		}
		l.Body = string(body)
		letters = append(letters, l)
	}
	return letters, rows.Err()
}

// Replay appends the letter's body to the queue again; the letter stays listed.
func (t *Table) Replay(ctx context.Context, id string) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return ErrNoLetter
	}
	var body []byte
	err = t.db.QueryRowContext(ctx, "SELECT body FROM dead_letters WHERE id = ?", n).Scan(&body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return ErrNoLetter
	case err != nil:
		return fmt.Errorf("cannot read dead letter %s: %w", id, err)
	}
	if err := t.insert(ctx, t.db, []any{body}); err != nil {
		return err
	}
	t.wakeUp()
	return nil
}
