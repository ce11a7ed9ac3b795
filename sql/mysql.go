package sql

import (
	"context"
	dbsql "database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
)

// What a connection waits for at most, where the DSN does not say.
const (
	dialTimeout = 2 * time.Second
	ioTimeout   = 10 * time.Second
	lockWait    = "5" // seconds; the server's 50 would outlast ioTimeout and end as a broken connection instead of 1205
)

// openMySQL opens the pool. What correctness rests on is set here whatever the DSN says.
func (s *Store) openMySQL(ctx context.Context, cfg Config) (gorm.Dialector, error) {
	c, err := mysql.ParseDSN(cfg.DSN)
	if err != nil {
		return nil, fmt.Errorf("db.dsn cannot be read, want user:password@tcp(host:port)/name: %w", err)
	}
	if c.DBName == "" {
		return nil, errors.New("db.dsn names no database, want user:password@tcp(host:port)/name")
	}
	if err := completeDSN(c); err != nil {
		return nil, fmt.Errorf("db.dsn: %w", err)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("db.dsn: %w", err)
	}
	s.pool = dbsql.OpenDB(readCommitted{connector})
	s.pool.SetMaxOpenConns(cfg.MaxOpen)
	s.pool.SetMaxIdleConns(cfg.MaxOpen) // the default of 2 would dial for every batch
	s.pool.SetConnMaxLifetime(cfg.MaxLife)
	s.now = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)"
	if err := s.pool.PingContext(ctx); err != nil {
		return nil, fmt.Errorf("cannot reach the database %s at %s: %w", c.DBName, c.Addr, closing(s.pool, err))
	}
	return gormmysql.New(gormmysql.Config{Conn: s.pool, DSNConfig: c}), nil
}

func completeDSN(c *mysql.Config) error {
	if c.Timeout == 0 {
		c.Timeout = dialTimeout
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = ioTimeout
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = ioTimeout
	}
	c.ParseTime, c.Loc = true, time.UTC
	c.ClientFoundRows = true   // RowsAffected counts rows that the WHERE matched, as SQLite does: a guard that matched has held, changed or not
	c.InterpolateParams = true // one round trip a statement instead of prepare, execute, close; safe with utf8mb4
	c.MultiStatements = false
	c.Logger = &mysql.NopLogger{} // broken connections are returned as errors; the driver would print them as well
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	c.Params["time_zone"] = "'+00:00'" // or UNIX_TIMESTAMP(NOW()) jumps with the server's summer time
	if c.Params["innodb_lock_wait_timeout"] == "" {
		c.Params["innodb_lock_wait_timeout"] = lockWait
	}
	return c.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin"))
}

// readCommitted makes connections whose transactions are READ COMMITTED. The DSN cannot say so for both servers: the
// variable is transaction_isolation in MySQL 8 and tx_isolation in MariaDB before 11.1, and each refuses the other's.
type readCommitted struct{ driver.Connector }

// Connect dials and sets the session's isolation.
func (r readCommitted) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	const set = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, set, nil); err != nil {
		_ = conn.Close() // the first error tells more
		return nil, err
	}
	return conn, nil
}
