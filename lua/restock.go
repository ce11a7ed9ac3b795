package lua

import (
	"context"
	"fmt"

	"floodgate/sale"
)

var restockScript = verb("restock", Reserved, Again, Unopened, Unproven, Stale)

// Restock adds n units (1..[sale.MaxTotal]) of an item, once for each operation id (1..64 characters of a token's
// alphabet). Reserved: added now. Again: was added. Stale: another epoch, whose rebuild has counted the lot. Unproven:
// try again after the recovery, which will then say Stale. Unopened: no meta or no such item.
func (l *Ledger) Restock(ctx context.Context, c Cell, commodity sale.ID, n, epoch int64, operation string) (Code, error) {
	if err := checkCell(c); err != nil {
		return 0, err
	}
	if commodity <= 0 || n < 1 || n > sale.MaxTotal || operation == "" || !clean(operation) {
		return 0, fmt.Errorf("%w: restock of item %d by %d units, operation %.80q", ErrArgument, commodity, n, operation)
	}
	return l.callCode(ctx, restockScript, c, int64(commodity), n, epoch, operation)
}
