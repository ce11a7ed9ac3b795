package lua

import (
	"context"
	"fmt"

	"floodgate/sale"
)

// Holder is one user's place in the buyers of an item.
type Holder struct{ User, Commodity sale.ID }

// Holders reads the tokens by slot of at most [MaxBatch] buyers, in order; nil for one who holds nothing. No script: one HMGET.
func (l *Ledger) Holders(ctx context.Context, c Cell, who ...Holder) ([][]sale.Token, error) {
	if err := checkSize(len(who), MaxBatch); err != nil || len(who) == 0 {
		return nil, err
	}
	fields := make([]string, len(who))
	for i, h := range who {
		fields[i] = h.User.String() + ":" + h.Commodity.String()
	}
	values, err := l.rdb.HMGet(ctx, keysOf(c)[keyBuyers], fields...).Result()
	if err != nil {
		return nil, fmt.Errorf("cannot read buyers: %w", err)
	}
	out := make([][]sale.Token, len(who))
	for i, v := range values {
		if list, ok := v.(string); ok {
			out[i] = tokens(list)
		}
	}
	return out, nil
}
