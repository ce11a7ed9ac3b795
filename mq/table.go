package mq

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"floodgate/sale"
)

// tableQueue is the name of the only queue of driver table.
const tableQueue = "table"

// tableLook is how often an idle queue is looked at without being woken: another process (an operator's replay) may have written.
const tableLook = time.Second

// Table is the order queue in the SQLite file of the embedded mode: the rows of order_queue in order of their numbers. A
// send is one statement, so it is durable or was not, and whoever waits for messages is woken in process. It is safe for
// concurrent use; several consumers take turns, since there is one queue.
type Table struct {
	db      *sql.DB
	logger  *slog.Logger
	metrics *metrics
	wake    chan struct{} // holds a token where rows may be waiting
	turn    chan struct{} // holds the token of whoever may take rows
}

var (
	_ Producer    = (*Table)(nil)
	_ Consumer    = (*Table)(nil)
	_ Backlog     = (*Table)(nil)
	_ DeadLetters = (*Table)(nil)
)

// NewTable is the queue in this file, whose migrations have run; the file must be opened with WAL, synchronous FULL and a busy timeout.
func NewTable(db *sql.DB, opts ...Option) *Table {
	o := apply(opts)
	t := &Table{db: db, logger: o.logger, metrics: newMetrics(o.registry, "table"), wake: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	t.turn <- struct{}{}
	return t
}

// Close does nothing: the file belongs to whoever opened it.
func (t *Table) Close() error { return nil }

// Send appends the batch in one transaction and returns when it is on disk.
func (t *Table) Send(ctx context.Context, batch []sale.Message) error {
	if err := checkBatch(batch); err != nil {
		return err
	}
	bodies := make([]any, len(batch))
	for i := range batch {
		bodies[i] = batch[i].Append(make([]byte, 0, sale.MaxMessage))
	}
	if err := t.insert(ctx, t.db, bodies); err != nil {
		return err
	}
	t.metrics.sent.Add(float64(len(batch)))
	t.wakeUp()
	return nil
}

func checkBatch(batch []sale.Message) error {
	if len(batch) == 0 || len(batch) > MaxSend {
		return fmt.Errorf("cannot send a batch of %d messages: want 1 to %d", len(batch), MaxSend)
	}
	return nil
}

// execer is a database or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (t *Table) insert(ctx context.Context, on execer, bodies []any) error {
	query := "INSERT INTO order_queue (body) VALUES (?)" + strings.Repeat(", (?)", len(bodies)-1)
	if _, err := on.ExecContext(ctx, query, bodies...); err != nil {
		return fmt.Errorf("cannot append %d messages to the queue: %w", len(bodies), err)
	}
	return nil
}

func (t *Table) wakeUp() {
	select {
	case t.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Run takes batches until ctx ends; see [Consumer]. While another Run is taking, it waits for its turn.
func (t *Table) Run(ctx context.Context, h Handler) error {
	select {
	case <-ctx.Done():
		return nil
	case <-t.turn:
		defer func() { t.turn <- struct{}{} }()
	}
	o := &offerer{handle: h, metrics: t.metrics, logger: t.logger}
	for ctx.Err() == nil {
		n, err := t.step(ctx, o)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			t.logger.Warn("the queue's file does not answer", "error", err)
			rest(ctx, lastPause)
		case n == 0:
			t.idle(ctx)
		}
	}
	return nil
}

func (t *Table) idle(ctx context.Context) {
	look := time.NewTimer(tableLook)
	defer look.Stop()
	select {
	case <-ctx.Done():
	case <-t.wake:
	case <-look.C:
	}
}

// step takes one batch through the handler and deletes it; it says how many rows there were.
func (t *Table) step(ctx context.Context, o *offerer) (int, error) {
	taken, err := t.take(ctx)
	if err != nil || len(taken) == 0 {
		return 0, err
	}
	last := taken[len(taken)-1].offset
	good, bad := read(taken)
	if err := t.bury(ctx, bad); err != nil {
		return 0, err
	}
	if err := o.offer(ctx, Batch{Messages: good, Position: Position{Queue: tableQueue, Next: last + 1}}); err != nil {
		return 0, err
	}
	// What was placed is acknowledged even where Run is ending: the context of the handler was alive, so is this one.
	inHand, cut := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cut()
	if _, err := t.db.ExecContext(inHand, "DELETE FROM order_queue WHERE id <= ?", last); err != nil {
		return 0, fmt.Errorf("cannot acknowledge the queue up to %d: %w", last, err)
	}
	return len(taken), nil
}

// take reads the oldest rows without deleting them.
func (t *Table) take(ctx context.Context) ([]raw, error) {
	rows, err := t.db.QueryContext(ctx, "SELECT id, body FROM order_queue ORDER BY id LIMIT ?", MaxSend)
	if err != nil {
		return nil, fmt.Errorf("cannot take from the queue: %w", err)
	}
	defer rows.Close()
	var taken []raw
	for rows.Next() {
		var r raw
		if err := rows.Scan(&r.offset, &r.body); err != nil {
			return nil, fmt.Errorf("cannot take from the queue: %w", err)
		}
		taken = append(taken, r)
	}
	return taken, rows.Err()
}

// Ends gives the number behind the highest one ever given, also where the queue is empty; 0 where nothing was ever sent.
func (t *Table) Ends(ctx context.Context) ([]Position, error) {
	var next int64
	err := t.db.QueryRowContext(ctx, "SELECT coalesce(max(seq) + 1, 0) FROM sqlite_sequence WHERE name = 'order_queue'").Scan(&next)
	if err != nil {
		return nil, fmt.Errorf("cannot read the end of the queue: %w", err)
	}
	return []Position{{Queue: tableQueue, Next: next}}, nil
}

// Parked is 0: there is no retry topic.
func (t *Table) Parked(context.Context) (int64, error) { return 0, nil }
