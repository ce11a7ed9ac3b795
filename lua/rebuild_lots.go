package lua

import (
	"context"
	"fmt"
	"slices"
)

var rebuildLotsScript = verb("rebuild_lots", Reserved, Stale)

// RebuildLots notes the operation ids of lots that the rebuild's stock counts, so that Restock answers Again for them.
// It stands between RebuildBegin and RebuildEnd; Stale where another epoch is being built.
func (l *Ledger) RebuildLots(ctx context.Context, c Cell, epoch int64, operations []string) (Code, error) {
	if err := checkCell(c); err != nil {
		return 0, err
	}
	code := Reserved
	for part := range slices.Chunk(operations, MaxBatch) {
		args := []any{epoch}
		for _, o := range part {
			if o == "" || !clean(o) {
				return 0, fmt.Errorf("%w: operation %.80q", ErrArgument, o)
			}
			args = append(args, o)
		}
		var err error
		if code, err = l.callCode(ctx, rebuildLotsScript, c, args...); err != nil || code != Reserved {
			return code, err
		}
	}
	return code, nil
}
