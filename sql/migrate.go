package sql

import (
	"context"
	dbsql "database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// Migrate brings the tables "up" to this version, takes the newest migration "down" again, or tells the "status".
// It returns one line a migration. Any number of processes may call it at once: they take turns.
func (s *Store) Migrate(ctx context.Context, direction string) ([]string, error) {
	provider, err := s.migrator()
	if err != nil {
		return nil, fmt.Errorf("cannot read the migrations: %w", err)
	}
	switch direction {
	case "up":
		results, err := provider.Up(ctx)
		return resultLines(results), migrateError(err)
	case "down":
		result, err := provider.Down(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return nil, nil
		}
		if result == nil {
			return nil, migrateError(err)
		}
		return resultLines([]*goose.MigrationResult{result}), migrateError(err)
	case "status":
		statuses, err := provider.Status(ctx)
		return statusLines(statuses), migrateError(err)
	}
	return nil, fmt.Errorf("cannot migrate %q: want up, down or status", direction)
}

func migrateError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot migrate: %w", err)
}

// migrator is built a call: it is not [goose.Provider.Close]d, since that would close the pool.
func (s *Store) migrator() (*goose.Provider, error) {
	folder, err := fs.Sub(migrations, "migrations/"+s.driver)
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{goose.WithLogger(goose.NopLogger())}
	if s.driver == SQLite {
		return goose.NewProvider(goose.DialectSQLite3, s.pool, folder, options...)
	}
	options = append(options, goose.WithSessionLocker(namedLock{}))
	return goose.NewProvider(goose.DialectMySQL, s.pool, folder, options...)
}

func resultLines(results []*goose.MigrationResult) []string {
	var lines []string
	for _, r := range results {
		lines = append(lines, fmt.Sprintf("%s %s in %s", r.Source.Path, r.Direction, r.Duration.Round(1e6)))
	}
	return lines
}

func statusLines(statuses []*goose.MigrationStatus) []string {
	var lines []string
	for _, st := range statuses {
		line := fmt.Sprintf("%s %s", st.Source.Path, st.State)
		if st.State == goose.StateApplied {
			line += " at " + st.AppliedAt.UTC().Format("2006-01-02T15:04:05Z")
		}
		lines = append(lines, line)
	}
	return lines
}

// namedLock lets one process at a time migrate a database of MySQL, whose DDL no transaction holds together.
type namedLock struct{}

// SessionLock waits at most 60 s for the other processes' migrations.
func (namedLock) SessionLock(ctx context.Context, conn *dbsql.Conn) error {
	// In short waits: one of 60 s would pass the connection's read timeout.
	for range 30 {
		var got dbsql.NullInt64
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(LEFT(CONCAT('floodgate ', DATABASE()), 64), 2)").Scan(&got); err != nil {
			return err
		}
		if got.Int64 == 1 {
			return nil
		}
	}
	return errors.New("another process has been migrating this database for 60 s")
}

// SessionUnlock lets the next one go.
func (namedLock) SessionUnlock(ctx context.Context, conn *dbsql.Conn) error {
	_, err := conn.ExecContext(ctx, "DO RELEASE_LOCK(LEFT(CONCAT('floodgate ', DATABASE()), 64))")
	return err
}
