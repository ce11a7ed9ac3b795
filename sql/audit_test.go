package sql

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"floodgate/sale"
)

// Every query of audit.sql runs on both dialects, is silent where all is well, and tells of its own damage.
func TestAuditQueries(t *testing.T) {
	text, err := os.ReadFile("audit.sql")
	ok(t, err)
	queries := strings.Split(strings.TrimSpace(regexp.MustCompile(`(?m)^--.*$`).ReplaceAllString(string(text), "")), ";")
	queries = queries[:len(queries)-1] // behind the last semicolon
	damage := []string{
		"UPDATE items SET total = 1",
		"UPDATE items SET sold = sold + 1",
		"UPDATE items SET fallback_left = fallback_quota + 1",
		"UPDATE activities SET per_user_limit = 1",
		"DELETE FROM slots WHERE user_id = 1",
		"INSERT INTO slots (user_id, activity_id, commodity_id, slot, order_no) VALUES (9, 9, 9, 0, 9)",
	}
	if len(queries) != len(damage) {
		t.Fatalf("%d queries, %d kinds of damage", len(queries), len(damage))
	}
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 2)
		b.place(t, s, 1, b.order(1, 0), b.order(2, 0, 1), failed(b.order(3, 0), sale.ReasonExpired))
		rows := func(query string) int {
			var found []map[string]any
			ok(t, s.db.Raw(query).Scan(&found).Error)
			return len(found)
		}
		for _, q := range queries {
			if n := rows(q); n != 0 {
				t.Errorf("%d rows where all is well: %s", n, q)
			}
		}
		for i, q := range queries {
			must(exec(s.db.WithContext(t.Context()), damage[i]))(t)
			if rows(q) == 0 {
				t.Errorf("%q is not seen by %s", damage[i], q)
			}
		}
	})
}
