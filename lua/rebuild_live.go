package lua

import "context"

var rebuildLiveScript = verb("rebuild_live", Reserved, Again, Unproven, Stale)

// RebuildLive ends a recovery and publishes every item's stock. Reserved: live now. Again: was live. Anything else:
// start over, since the server (Unproven), or the epoch or the data (Stale) has changed since RebuildEnd.
func (l *Ledger) RebuildLive(ctx context.Context, c Cell, epoch int64) (Code, error) {
	if err := checkCell(c); err != nil {
		return 0, err
	}
	return l.callCode(ctx, rebuildLiveScript, c, epoch)
}
