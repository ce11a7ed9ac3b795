package lua

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"floodgate/sale"
)

// Case 38, the ledger's part: the window is [starts_at, ends_at) to the millisecond, by Redis's clock and no other.
func TestCase38WindowToTheMillisecond(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	w := newWorld(t, server.Addr(), Options{Embedded: true})
	w.sale.StartsAt = 1794326400000 // 2026-11-11T00:00:00+08:00
	w.sale.EndsAt = w.sale.StartsAt + 3_600_000
	server.SetTime((w.sale.StartsAt - 1000).Time())
	w.open(t, 10)
	for i, c := range []struct {
		at   sale.Millis
		want Code
	}{
		{w.sale.StartsAt - 1, NotStarted}, {w.sale.StartsAt, Reserved}, {w.sale.EndsAt - 1, Reserved}, {w.sale.EndsAt, Ended},
	} {
		server.SetTime(c.at.Time())
		if r := w.reserve(t, wish(i)); r.Answers[0].Code != c.want || r.At != c.at {
			t.Errorf("at %d: %d by a clock of %d, want %d", c.at, r.Answers[0].Code, r.At, c.want)
		}
	}
	server.SetTime((w.sale.StartsAt + sale.Millis(Hold.Milliseconds())).Time())
	if due, held, err := w.Due(w.ctx, w.cell, 9); err != nil || len(due) != 0 || len(held) != 1 || held[0].ReservedAt != w.sale.StartsAt {
		t.Errorf("after the hold: due %v, held too long %v, %v", due, held, err)
	}
}
