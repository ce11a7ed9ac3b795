package lua

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"floodgate/sale"
)

// Stock is the cheap part of [Ledger.Inspect], for those who only show what is left: Opened, Epoch, Version and
// Remaining. No script: two hash reads in one round trip, so the version may be older than the stock by one change.
// Safe for concurrent use.
func (l *Ledger) Stock(ctx context.Context, c Cell) (State, error) {
	k := keysOf(c)
	pipe := l.rdb.Pipeline()
	meta := pipe.HMGet(ctx, k[0], "epoch", "version")
	stock := pipe.HGetAll(ctx, k[keyStock])
	if _, err := pipe.Exec(ctx); err != nil && err != redis.Nil {
		return State{}, fmt.Errorf("cannot read the stock of activity %s: %w", c.Activity, err)
	}
	s := State{Remaining: make(map[sale.ID]int64, len(stock.Val()))}
	for commodity, left := range stock.Val() {
		id, err := sale.ParseID(commodity)
		if err != nil {
			return State{}, fmt.Errorf("stock of activity %s has a field %q: %w", c.Activity, commodity, err)
		}
		if s.Remaining[id], err = strconv.ParseInt(left, 10, 64); err != nil {
			return State{}, fmt.Errorf("stock of commodity %s in activity %s: %w", id, c.Activity, err)
		}
	}
	for i, into := range []*int64{&s.Epoch, &s.Version} {
		if text, ok := meta.Val()[i].(string); ok {
			if v, err := strconv.ParseInt(text, 10, 64); err == nil {
				*into = v
			}
		}
	}
	s.Opened = s.Epoch > 0 && len(s.Remaining) > 0
	return s, nil
}
