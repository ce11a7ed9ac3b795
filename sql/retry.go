package sql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	gosqlite "github.com/glebarez/go-sqlite"
	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// Codes of the two databases that are told apart.
const (
	mysqlDuplicate   = 1062
	mysqlLockWait    = 1205
	mysqlDeadlock    = 1213
	sqliteBusy       = 5 // also locked (6): the low byte of the extended code
	sqliteLocked     = 6
	sqlitePrimaryKey = 1555
	sqliteUnique     = 2067
)

const (
	maxRetries = 3
	retryPause = 10 * time.Millisecond // the first pause at most; twice that each time
)

// commitError says that COMMIT was not answered: the transaction may stand or not.
type commitError struct{ err error }

func (e *commitError) Error() string { return "the COMMIT was not answered: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// isDuplicate says that a unique key refused a row; neither database says reliably which row of several.
func isDuplicate(err error) bool {
	if m := (*mysql.MySQLError)(nil); errors.As(err, &m) {
		return m.Number == mysqlDuplicate
	}
	if l := (*gosqlite.Error)(nil); errors.As(err, &l) {
		return l.Code() == sqlitePrimaryKey || l.Code() == sqliteUnique
	}
	return false
}

// isTransient says that the database undid the statement or transaction for the sake of another one: it may be run again.
func isTransient(err error) bool {
	if m := (*mysql.MySQLError)(nil); errors.As(err, &m) {
		return m.Number == mysqlLockWait || m.Number == mysqlDeadlock
	}
	if l := (*gosqlite.Error)(nil); errors.As(err, &l) {
		return l.Code()&0xff == sqliteBusy || l.Code()&0xff == sqliteLocked
	}
	return false
}

// retry runs f again, at most three times, while it was undone for the sake of another transaction.
func retry(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || !isTransient(err) || try == maxRetries {
			return err
		}
		if err := pause(ctx, try, err); err != nil {
			return err
		}
	}
}

// pause waits before another try, with jitter: the two that collided must not meet again. An ended context is an error.
func pause(ctx context.Context, try int, cause error) error {
	timer := time.NewTimer(rand.N(retryPause << try))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w while retrying: %w", ctx.Err(), cause)
	}
}

// inTx runs f in one transaction and retries it as a whole. A COMMIT without an answer is a [*commitError]; after every
// other error nothing was written.
func (s *Store) inTx(ctx context.Context, f func(tx *gorm.DB) error) error {
	return retry(ctx, func() error { return s.once(ctx, f) })
}

// once is inTx without retries.
func (s *Store) once(ctx context.Context, f func(tx *gorm.DB) error) error {
	tx := s.db.WithContext(ctx).Begin()
	if tx.Error != nil {
		return tx.Error
	}
	if err := runTx(tx, f); err != nil {
		return err
	}
	err := tx.Commit().Error
	if err == nil || isTransient(err) {
		return err
	}
	return &commitError{err}
}

// runTx rolls back where f fails or panics: a transaction left open would keep its locks until the connection dies.
func runTx(tx *gorm.DB, f func(tx *gorm.DB) error) error {
	done := false
	defer func() {
		if !done {
			tx.Rollback() // a connection that cannot roll back is dropped by the pool, which rolls back too
		}
	}()
	err := f(tx)
	done = err == nil
	return err
}

// exec runs one statement and tells how many rows its WHERE matched.
func exec(db *gorm.DB, statement string, args ...any) (int64, error) {
	r := db.Exec(statement, args...)
	return r.RowsAffected, r.Error
}
