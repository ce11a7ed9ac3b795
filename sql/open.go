package sql

import (
	"context"
	dbsql "database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Drivers of Config.Driver.
const (
	MySQL  = "mysql" // MySQL 8 or MariaDB 10.6 and later
	SQLite = "sqlite"
)

// Config says which database holds the orders.
type Config struct {
	Driver  string        `config:"driver" default:"sqlite" help:"mysql (also MariaDB) or sqlite"`
	DSN     string        `config:"dsn" secret:"true" help:"mysql: user:password@tcp(host:port)/name; sqlite: the file, default floodgate.db in data.dir"`
	MaxOpen int           `config:"max_open" default:"32" help:"most connections of this process to MySQL; SQLite always has one"`
	MaxLife time.Duration `config:"max_life" default:"3m" help:"age at which a connection to MySQL is replaced; below the server's wait_timeout and any balancer's"`
}

// Store is the database of orders. It is safe for concurrent use.
type Store struct {
	db     *gorm.DB
	pool   *dbsql.DB
	driver string
	now    string // SQL for the database's clock in epoch milliseconds, the one clock of leases
}

var _ API = (*Store)(nil)

// Open connects to the database and checks that it answers; it changes nothing in it, see [Store.Migrate].
// Errors name the address or file, never the password.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.DSN == "" {
		return nil, fmt.Errorf("db.dsn is missing: it names the %s database", cfg.Driver)
	}
	if cfg.MaxOpen <= 0 {
		cfg.MaxOpen = 32 // more than two cores of MariaDB can use, few enough for its default of 151
	}
	if cfg.MaxLife <= 0 {
		cfg.MaxLife = 3 * time.Minute
	}
	s := &Store{driver: cfg.Driver}
	var dialect gorm.Dialector
	var err error
	switch cfg.Driver {
	case MySQL:
		dialect, err = s.openMySQL(ctx, cfg)
	case SQLite:
		dialect, err = s.openSQLite(ctx, cfg)
	default:
		err = fmt.Errorf("db.driver is %q: want %s or %s", cfg.Driver, MySQL, SQLite)
	}
	if err != nil {
		return nil, err
	}
	s.db, err = gorm.Open(dialect, &gorm.Config{
		SkipDefaultTransaction: true,           // each method opens the one it needs
		Logger:                 logger.Discard, // errors are returned; statements and values are nobody's to read in a log
		DisableAutomaticPing:   true,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot use the database: %w", closing(s.pool, err))
	}
	return s, nil
}

// closing closes a pool that could not be put to use, and gives back the error that said so.
func closing(pool *dbsql.DB, err error) error {
	_ = pool.Close() // the first error tells more
	return err
}

// DB is the pool beneath: the queue of the embedded mode lives in the same SQLite file and so uses the same single
// connection. A caller that holds a transaction of it must not call the store before it has ended.
func (s *Store) DB() *dbsql.DB { return s.pool }

// Close waits for running statements and closes every connection.
func (s *Store) Close() error { return s.pool.Close() }

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.PingContext(ctx) }
