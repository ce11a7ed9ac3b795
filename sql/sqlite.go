package sql

import (
	"context"
	dbsql "database/sql"
	"fmt"
	"os"
	"strings"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
)

// Every commit of the embedded mode is on disk before it is answered (WAL, synchronous FULL), and every transaction takes
// the write lock when it begins: one that read first could not be promoted without SQLITE_BUSY.
const sqliteParams = "?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(OFF)"

// openSQLite opens the file, which it creates for its owner alone (0600; -wal and -shm follow it).
func (s *Store) openSQLite(ctx context.Context, cfg Config) (gorm.Dialector, error) {
	path := cfg.DSN
	if strings.HasPrefix(path, "file:") || strings.HasPrefix(path, ":") || strings.Contains(path, "?") {
		return nil, fmt.Errorf("db.dsn is %q: want the path of a file, without file: and parameters", path)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot write the database file (db.dsn, data.dir): %w", err) // a PathError names the path
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("cannot write the database file (db.dsn, data.dir): %w", err)
	}
	if s.pool, err = dbsql.Open(sqlite.DriverName, path+sqliteParams); err != nil {
		return nil, fmt.Errorf("cannot open the database file %s: %w", path, err)
	}
	// One connection: SQLite has one writer anyway, and writers that queue in Go wait without SQLITE_BUSY.
	s.pool.SetMaxOpenConns(1)
	s.pool.SetMaxIdleConns(1)
	s.now = "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)"
	// Opening is lazy and the folder may refuse the -wal file beside a writable database: write now, not at the first order.
	if err := s.pool.PingContext(ctx); err != nil {
		return nil, fmt.Errorf("cannot open the database file %s: %w", path, closing(s.pool, err))
	}
	if _, err := s.pool.ExecContext(ctx, "BEGIN IMMEDIATE; ROLLBACK"); err != nil {
		return nil, fmt.Errorf("cannot write the database file %s or its folder: %w", path, closing(s.pool, err))
	}
	return sqlite.Dialector{Conn: s.pool}, nil
}
