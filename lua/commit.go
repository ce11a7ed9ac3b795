package lua

import (
	"context"

	"floodgate/sale"
)

var commitScript = verb("commit", Reserved, Again, Unknown, Unopened, Unproven)

// Commit writes the outcomes of live orders (pending_payment, paid), at most [MaxBatch], and publishes them.
// Reserved: committed now. Again: was committed. Unknown: released or not here, and left so. Unopened: no meta.
// Unproven: nothing was written or published, commit again later. An error means unanswered: commit again.
func (l *Ledger) Commit(ctx context.Context, c Cell, batch []Settlement) ([]Code, error) {
	return l.settle(ctx, commitScript, c, batch, func(o sale.Code) bool { return o == sale.PendingPayment || o == sale.Paid })
}
