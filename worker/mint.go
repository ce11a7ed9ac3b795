package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"floodgate/sale"
	"floodgate/sql"
)

// Layout of an order number, 63 bits: milliseconds since 2025 (41, enough until 2094), node (10), sequence (2), shard of
// the user (10). The sequence counts within a shard and millisecond, so 4 x 1024 numbers a millisecond and node; a shard that
// needs more borrows the next millisecond.
const (
	mintEpoch  = 1735689600000 // 2025-01-01T00:00:00Z
	shardBits  = 10
	seqBits    = 2
	nodeBits   = 10
	shards     = 1 << shardBits
	nodeTTL    = 30 * time.Second
	nodeMargin = 5 * time.Second // no number is minted in the last seconds of a lease
	maxAhead   = 200 << seqBits  // how far, in sequence steps, a shard may run ahead of the clock (200 ms)
)

// errNode says that this worker holds no node id now, so it cannot mint.
var errNode = errors.New("no node id is leased: order numbers cannot be minted")

// mint makes order numbers: unique by the node id leased in the database and judged by the monotonic clock. Safe for concurrent use.
type mint struct {
	store *sql.Store
	owner string
	log   *slog.Logger

	// The wall clock is read once, when the process begins: numbers that followed it would stand still after it was set back.
	base  int64     // milliseconds since mintEpoch then
	began time.Time // with monotonic reading

	mu    sync.Mutex // guards what follows
	node  int        // -1: none
	until time.Time  // with monotonic reading
	last  [shards]int64
}

func newMint(store *sql.Store, owner string, log *slog.Logger) *mint {
	now := time.Now()
	return &mint{store: store, owner: owner, log: log, base: now.UnixMilli() - mintEpoch, began: now, node: -1}
}

// shardOf spreads users over shards (the finalizer of SplitMix64, so that neighbouring ids part).
func shardOf(user sale.ID) int64 {
	z := uint64(user) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int64((z ^ z>>31) >> (64 - shardBits))
}

// next mints a number for the user's order; errNode where the lease is not sure to hold.
func (m *mint) next(user sale.ID) (sale.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.node < 0 || !now.Before(m.until.Add(-nodeMargin)) {
		return 0, errNode
	}
	shard := shardOf(user)
	tick := (m.base + now.Sub(m.began).Milliseconds()) << seqBits
	if m.last[shard] >= tick+maxAhead {
		return 0, fmt.Errorf("shard %d is asked for more order numbers than it has", shard)
	}
	tick = max(tick, m.last[shard]+1)
	m.last[shard] = tick
	ms, seq := tick>>seqBits, tick&(1<<seqBits-1)
	return sale.ID(ms<<(nodeBits+seqBits+shardBits) | int64(m.node)<<(seqBits+shardBits) | seq<<shardBits | shard), nil
}

// lease takes or renews the node id. Asked for before the call is sent, the lease's end is judged too early, never too late.
func (m *mint) lease(ctx context.Context) error {
	asked := time.Now()
	m.mu.Lock()
	node := m.node
	m.mu.Unlock()
	if node >= 0 {
		if held, err := m.store.RenewNode(ctx, node, m.owner, nodeTTL); err != nil {
			return fmt.Errorf("cannot renew node id %d: %w", node, err)
		} else if !held {
			node = -1
		}
	}
	if node < 0 {
		var err error
		if node, err = m.store.TakeNode(ctx, m.owner, nodeTTL); err != nil {
			return fmt.Errorf("cannot lease a node id: %w", err)
		}
		m.log.Info("node id leased", "node", node)
	}
	m.mu.Lock()
	m.node, m.until = node, asked.Add(nodeTTL)
	m.mu.Unlock()
	return nil
}

// run renews the lease until ctx ends. It is left to expire, so that nobody mints with the same node in the same millisecond.
func (m *mint) run(ctx context.Context) error {
	t := time.NewTicker(nodeTTL / 6)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if err := m.lease(ctx); err != nil && ctx.Err() == nil {
				m.log.Warn("node id lease", "error", err)
			}
		}
	}
}
