package lua

import (
	"context"
	"encoding/json"
	"fmt"

	"floodgate/sale"
)

var openScript = verb("open", Reserved, Again, Unproven, Stale)

// Open loads the stock of an activity once and makes this Redis the proven one. remaining has every item's units that
// may be sold here (total less the fallback's quota). Reserved: opened now. Again: the same epoch is open, nothing is
// written. Stale: another epoch, or remains of one: a recovery must go on. ErrUnproven: Redis does not tell its identity.
// All keys expire at the activity's Expires, so that one whose Expires is past is gone at once.
func (l *Ledger) Open(ctx context.Context, a sale.Activity, epoch int64, remaining map[sale.ID]int64) (Code, error) {
	args, err := stockArgs(&a, epoch, remaining)
	if err != nil {
		return 0, err
	}
	return l.load(ctx, openScript, a.ID, args)
}

// load calls open or rebuild_end and adds to the set of activities what is there then.
func (l *Ledger) load(ctx context.Context, s *script, id sale.ID, args []any) (Code, error) {
	code, err := l.callCode(ctx, s, Cell{Activity: id}, args...)
	switch {
	case err != nil:
		return 0, err
	case code == Unproven:
		return code, fmt.Errorf("%w: it does not tell its run id and replication id (may this user call INFO?)", ErrUnproven)
	case code == Stale:
		return code, nil
	}
	return code, l.enlist(ctx, id)
}

// enlist adds to the set of activities, which lies in another slot and so in another command.
func (l *Ledger) enlist(ctx context.Context, id sale.ID) error {
	if err := l.rdb.SAdd(ctx, ActivitiesKey, id.String()).Err(); err != nil {
		return fmt.Errorf("cannot enlist activity %s: %w", id, err)
	}
	return nil
}

// stockArgs are the arguments of open and rebuild_end: epoch, activity, stock.
func stockArgs(a *sale.Activity, epoch int64, remaining map[sale.ID]int64) ([]any, error) {
	described, err := activityArgs(a)
	if err != nil {
		return nil, err
	}
	if epoch < 0 || len(remaining) == 0 || len(remaining) > sale.MaxItems {
		return nil, fmt.Errorf("%w: activity %s, epoch %d, %d items", ErrArgument, a.ID, epoch, len(remaining))
	}
	args := append([]any{epoch}, described...)
	for commodity, n := range remaining {
		if commodity <= 0 || n < 0 || n > sale.MaxTotal {
			return nil, fmt.Errorf("%w: activity %s, item %d, %d units", ErrArgument, a.ID, commodity, n)
		}
		args = append(args, int64(commodity), n)
	}
	return args, nil
}

// activityArgs are what write_activity of the prelude takes: status starts_at ends_at limit expires_at catalog.
func activityArgs(a *sale.Activity) ([]any, error) {
	switch {
	case a.ID <= 0 || a.StartsAt < 0 || a.EndsAt <= 0:
		return nil, fmt.Errorf("%w: activity %d, window %d to %d", ErrArgument, a.ID, a.StartsAt, a.EndsAt)
	case a.PerUserLimit < 1 || a.PerUserLimit > sale.MaxQuantity:
		return nil, fmt.Errorf("%w: activity %s, limit %d, want 1 to %d", ErrArgument, a.ID, a.PerUserLimit, sale.MaxQuantity)
	}
	catalog, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("cannot write the catalog of activity %s: %w", a.ID, err)
	}
	return []any{string(a.Status), int64(a.StartsAt), int64(a.EndsAt), a.PerUserLimit, int64(a.Expires()), catalog}, nil
}
