package lua

import (
	"context"

	"floodgate/sale"
)

var rebuildEndScript = verb("rebuild_end", Reserved, Again, Unproven, Stale)

// RebuildEnd writes stock, meta and this server's identity: from here claims work and reserve still answers Unproven.
// Again: this epoch was written already (a repeat after a lost reply), and nothing is written twice, since claims may have
// adopted in between. Stale: another epoch is being built. ErrUnproven: Redis does not tell its identity.
func (l *Ledger) RebuildEnd(ctx context.Context, a sale.Activity, epoch int64, remaining map[sale.ID]int64) (Code, error) {
	args, err := stockArgs(&a, epoch, remaining)
	if err != nil {
		return 0, err
	}
	return l.load(ctx, rebuildEndScript, a.ID, args)
}
