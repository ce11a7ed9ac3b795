package lua

import "context"

var rebuildBeginScript = verb("rebuild_begin", Reserved, Stale)

// RebuildBegin starts to write a cell under a newer epoch than any that was built or begun here; Stale otherwise, also
// where the same call is made twice. It drops buyers, stock and pending, which follow from the reservations; those stay.
// It works where nothing exists. Until RebuildEnd every script that moves stock answers Unproven.
func (l *Ledger) RebuildBegin(ctx context.Context, c Cell, epoch int64) (Code, error) {
	if err := checkCell(c); err != nil {
		return 0, err
	}
	return l.callCode(ctx, rebuildBeginScript, c, epoch)
}
