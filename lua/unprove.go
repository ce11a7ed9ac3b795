package lua

import "context"

var unproveScript = verb("unprove", Reserved)

// Unprove clears the proven identity: from here every script that moves stock answers Unproven until a recovery is done.
// It is the first step of every recovery, and fine where nothing is open.
func (l *Ledger) Unprove(ctx context.Context, c Cell) error {
	if err := checkCell(c); err != nil {
		return err
	}
	code, err := l.callCode(ctx, unproveScript, c)
	if err != nil {
		return err
	}
	return asError(code)
}
