package worker

import (
	"log/slog"
	"testing"
	"time"
)

// A process that began while the machine's clock was an hour ahead mints on when the clock has been set right: otherwise no order
// of the shards in use could be placed for an hour.
func TestMintOverAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	m := newMint(w.store, "x", slog.New(slog.DiscardHandler))
	m.base += time.Hour.Milliseconds()
	must(t, m.lease(t.Context()))
	last, err := m.next(1)
	must(t, err)
	for range 10 {
		no, err := m.next(1)
		must(t, err)
		if no <= last {
			t.Fatalf("%d after %d", no, last)
		}
		last = no
	}
}
