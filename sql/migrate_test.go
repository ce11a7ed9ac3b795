package sql

import (
	"context"
	"strings"
	"testing"

	"floodgate/deploy/stacktest"
)

// bothBare is onBoth without the tables.
func bothBare(t *testing.T, f func(t *testing.T, s *Store)) {
	t.Parallel()
	for _, driver := range []string{SQLite, MySQL} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			f(t, bare(t, driver))
		})
	}
}

func TestMigrateUpAndDown(t *testing.T) {
	bothBare(t, func(t *testing.T, s *Store) {
		migrate := func(direction string) []string { return must(s.Migrate(t.Context(), direction))(t) }
		all := len(migrate("status"))
		for round := range 2 {
			for _, line := range migrate("status") {
				if !strings.Contains(line, "pending") {
					t.Errorf("round %d: %s, want pending", round, line)
				}
			}
			if lines := migrate("up"); len(lines) != all {
				t.Errorf("up: %q, want %d lines", lines, all)
			}
			if lines := migrate("up"); len(lines) != 0 {
				t.Errorf("up again: %q", lines)
			}
			for _, line := range migrate("status") {
				if !strings.Contains(line, "applied at 2") {
					t.Errorf("%s, want applied", line)
				}
			}
			newBook(t, s, 1, 0)
			for range all {
				if lines := migrate("down"); len(lines) != 1 {
					t.Errorf("down: %q, want one line", lines)
				}
			}
			if lines := migrate("down"); len(lines) != 0 {
				t.Errorf("down of nothing: %q", lines)
			}
		}
		if _, err := s.Migrate(t.Context(), "sideways"); err == nil {
			t.Error("migrated sideways")
		}
	})
}

func TestWorkersMigrateInTurn(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MySQL(t)
	var stores []*Store
	for range 4 {
		stores = append(stores, open(t, Config{Driver: MySQL, DSN: dsn}))
	}
	race(t, len(stores), func(n int) error {
		_, err := stores[n].Migrate(context.WithoutCancel(t.Context()), "up")
		return err
	})
	newBook(t, stores[0], 1, 0)
}
