package lua

import (
	"context"
	"fmt"

	"floodgate/sale"
)

var rebuildPageScript = verb("rebuild_page", Reserved, Stale)

// RebuildPage writes the reservations to keep, of any number, and drops the records of tokens, in calls of at most
// [MaxBatch] each. Stale where another epoch is being built or this one is built already: give up. A page may be
// written twice; a slot that two reservations claim is the last one's.
func (l *Ledger) RebuildPage(ctx context.Context, c Cell, epoch int64, keep []sale.Reservation, drop []sale.Token) (Code, error) {
	if err := checkCell(c); err != nil {
		return 0, err
	}
	for {
		k, d := min(len(keep), MaxBatch), min(len(drop), MaxBatch)
		args, err := pageArgs(epoch, keep[:k], drop[:d])
		if err != nil {
			return 0, err
		}
		code, err := l.callCode(ctx, rebuildPageScript, c, args...)
		keep, drop = keep[k:], drop[d:]
		if err != nil || code != Reserved || len(keep)+len(drop) == 0 {
			return code, err
		}
	}
}

func pageArgs(epoch int64, keep []sale.Reservation, drop []sale.Token) ([]any, error) {
	args := make([]any, 0, 2+len(drop)+2*len(keep))
	args = append(args, epoch, len(drop))
	for i := range drop {
		args = append(args, (*string)(&drop[i]))
	}
	for i := range keep {
		r := &keep[i]
		if err := checkUnit(r.Token, r.User, r.Commodity, r.Quantity); err != nil {
			return nil, err
		}
		if err := checkRecord(r); err != nil {
			return nil, err
		}
		args = append(args, (*string)(&r.Token), pack(r))
	}
	return args, nil
}

// checkRecord refuses what no record may say: a foreign word, or a live reservation without a slot a unit.
func checkRecord(r *sale.Reservation) error {
	slots := r.State != sale.Released && len(r.Slots) != r.Quantity
	for _, slot := range r.Slots {
		slots = slots || slot < 0 || slot >= sale.MaxQuantity
	}
	if slots || !clean(r.Outcome) || !clean(r.Reason) || checkPrice(r.Price) != nil || r.ReservedAt < 0 || r.OrderNo < 0 {
		return fmt.Errorf("%w: reservation %+v", ErrArgument, *r)
	}
	if r.State != sale.Occupied && r.State != sale.Committed && r.State != sale.Released {
		return fmt.Errorf("%w: state %d of reservation %s", ErrArgument, r.State, r.Token)
	}
	return nil
}
