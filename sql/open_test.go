package sql

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"floodgate/deploy/stacktest"
)

func TestOpenSaysWhatToChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	ok(t, os.WriteFile(file, []byte("this is not a database, but some text that is long enough"), 0o600))
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"driver":        {Config{Driver: "oracle", DSN: "x"}, `db.driver is "oracle"`},
		"no dsn":        {Config{Driver: SQLite}, "db.dsn is missing"},
		"no folder":     {Config{Driver: SQLite, DSN: filepath.Join(dir, "none", "x.db")}, filepath.Join(dir, "none", "x.db")},
		"not a folder":  {Config{Driver: SQLite, DSN: filepath.Join(file, "x.db")}, filepath.Join(file, "x.db")},
		"not a file":    {Config{Driver: SQLite, DSN: dir}, dir},
		"no database":   {Config{Driver: SQLite, DSN: file}, file},
		"parameters":    {Config{Driver: SQLite, DSN: file + "?mode=memory"}, "want the path of a file"},
		"memory":        {Config{Driver: SQLite, DSN: ":memory:"}, "want the path of a file"},
		"unreadable":    {Config{Driver: MySQL, DSN: "nonsense"}, "db.dsn cannot be read"},
		"no schema":     {Config{Driver: MySQL, DSN: "u:p@tcp(127.0.0.1:1)/"}, "db.dsn names no database"},
		"nobody there":  {Config{Driver: MySQL, DSN: "u:pass-word@tcp(127.0.0.1:1)/shop"}, "shop at 127.0.0.1:1"},
		"bad parameter": {Config{Driver: MySQL, DSN: "u:pass-word@tcp(127.0.0.1:1)/shop?timeout=soon"}, "db.dsn cannot be read"},
	} {
		s, err := Open(t.Context(), c.cfg)
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "pass-word") {
			t.Errorf("%s: got %q, want it to name %q and no password", name, err, c.want)
		}
	}
}

func TestWrongPasswordIsNotTold(t *testing.T) {
	t.Parallel()
	dsn, err := mysql.ParseDSN(stacktest.MySQL(t))
	ok(t, err)
	dsn.Passwd = "open-sesame"
	if _, err := Open(t.Context(), Config{Driver: MySQL, DSN: dsn.FormatDSN()}); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("got %v, want an error without the password", err)
	}
}

func TestSQLiteIsDurableAndPrivate(t *testing.T) {
	t.Parallel()
	s := fresh(t, SQLite)
	var path string
	ok(t, s.db.Raw("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path).Error)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		ok(t, err)
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(name), mode)
		}
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000", "foreign_keys": "0"} {
		var got string
		ok(t, s.db.Raw("PRAGMA "+pragma).Scan(&got).Error)
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

func TestMySQLSession(t *testing.T) {
	t.Parallel()
	s := fresh(t, MySQL)
	for variable, want := range map[string]string{
		"%x_isolation": "READ-COMMITTED", "transaction_isolation": "READ-COMMITTED", "time_zone": "+00:00",
		"innodb_lock_wait_timeout": "5", "collation_connection": "utf8mb4_bin",
	} {
		var rows []struct{ VariableName, Value string }
		ok(t, s.db.Raw("SHOW VARIABLES WHERE Variable_name LIKE ?", variable).Scan(&rows).Error)
		for _, r := range rows {
			if r.Value != want {
				t.Errorf("%s is %s, want %s", r.VariableName, r.Value, want)
			}
		}
	}
	b := newBook(t, s, 1, 0)
	for range 2 { // matched rows are counted, not changed ones
		if n := must(exec(s.db.WithContext(t.Context()), "UPDATE items SET sold = 0 WHERE activity_id = ?", b.activity))(t); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	}
}

func TestEndedContextWritesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 1, 0)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Place(ctx, b.activity, b.item, 1, []PlaceRequest{b.order(1, 0)}); err == nil {
			t.Error("placed under an ended context")
		}
		b.sums(t, s)
		ok(t, s.Ping(t.Context()))
	})
}
