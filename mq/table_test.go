package mq_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/glebarez/go-sqlite"

	"floodgate/mq"
)

func TestTable(t *testing.T) {
	t.Parallel()
	conformance(t, func(t *testing.T) *driver {
		db := openFile(t, filepath.Join(t.TempDir(), "floodgate.db"))
		table := mq.NewTable(db)
		return &driver{
			producer: table, worker: func() mq.Consumer { return table }, backlog: table, letters: table, queues: 1,
			raw: func(t *testing.T, body string) { execute(t, db, "INSERT INTO order_queue (body) VALUES (?)", body) },
		}
	})
}

// A file that was left by a process that died is served by the next one from where it was, and numbers never start again.
func TestTableAfterRestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "floodgate.db")
	first := mq.NewTable(openFile(t, file))
	if err := first.Send(t.Context(), messages(1, 3)); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", dsn(file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	second := mq.NewTable(db)
	w := start(t, second)
	same(t, w.messages(3), messages(1, 3))
	w.stop()
	w.wait()
	ends, err := mq.NewTable(db).Ends(t.Context())
	if err != nil || len(ends) != 1 || ends[0] != (mq.Position{Queue: "table", Next: 4}) {
		t.Errorf("ends of the drained queue: %v, %v; want table 4", ends, err)
	}
}

func dsn(file string) string {
	return "file:" + file + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_txlock=immediate"
}

// openFile makes a file with the queue's tables.
func openFile(t testing.TB, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	migration, err := os.ReadFile("../sql/migrations/sqlite/0002_queue.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(migration), "-- +goose Down")
	execute(t, db, up)
	return db
}

func execute(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}
