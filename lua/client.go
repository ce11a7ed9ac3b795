package lua

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// ledgerCap is how many transitions a cell's stream keeps, about: a batch of 64 is one entry of 5 KB, so the stream of
// a cell stays under 100 MB at the very most.
const ledgerCap = 16384

// Options of a Ledger.
type Options struct {
	Embedded bool // Redis is in this process (miniredis) and dies with it: there is no identity to prove
}

// Ledger speaks every verb to one Redis (a server, a sentinel's master or a cluster). It is safe for concurrent use and
// keeps no state of its own but the client: a client that repeats commands by itself does no harm, every verb may run
// twice; one for the hot path has MaxRetries -1, so that its caller decides.
type Ledger struct {
	rdb      redis.UniversalClient
	embedded string // "1" or "0", the first argument of every script
}

var _ API = (*Ledger)(nil)

// New makes a Ledger over a client that the caller owns and closes. It does not connect.
func New(rdb redis.UniversalClient, opt Options) *Ledger {
	l := &Ledger{rdb: rdb, embedded: "0"}
	if opt.Embedded {
		l.embedded = "1"
	}
	return l
}

// Load sends every script to Redis, so that the first buyer does not pay for it. Calling it is not needed for
// correctness: a script that Redis does not know is sent with its call.
func (l *Ledger) Load(ctx context.Context) error {
	for _, s := range scripts {
		if err := l.rdb.ScriptLoad(ctx, s.source).Err(); err != nil {
			return fmt.Errorf("cannot load script %s: %w", s.name, err)
		}
	}
	return nil
}
