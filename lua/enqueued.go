package lua

import (
	"context"
)

var enqueuedScript = verb("enqueued")

// Enqueued moves the next look at batches to [QueuedLook] from now. Name a batch (ReserveReply.Pending) only when the
// queue has acknowledged every token of it. A member that is gone is left gone; "" is passed over. A failure costs
// nothing but an early look, so that callers need not repeat it. At most [MaxBatch] members.
func (l *Ledger) Enqueued(ctx context.Context, c Cell, pending ...string) error {
	if err := checkCell(c); err != nil {
		return err
	}
	if err := checkSize(len(pending), MaxBatch); err != nil {
		return err
	}
	args := make([]any, 0, len(pending))
	for i := range pending {
		if pending[i] != "" {
			args = append(args, &pending[i])
		}
	}
	if len(args) == 0 {
		return nil
	}
	_, err := l.call(ctx, enqueuedScript, c, args...)
	return err
}
