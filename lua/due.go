package lua

import (
	"context"
	"fmt"

	"floodgate/sale"
)

var dueScript = verb("due", Reserved, Unopened, Unproven)

// maxDue is the most members one call of due looks at: each may have 256 records of 200 bytes.
const maxDue = 64

// Due looks at up to limit members of pending (1..64, each a batch of at most 256 tokens) and hands out their occupied
// reservations: due are to be placed, holdPassed get a tombstone. It tidies as it goes: settled tokens leave pending,
// released records are forgotten after [Forget]. What was handed out comes again after [FirstLook] unless it is settled.
// ErrUnopened and ErrUnproven say why nothing is handed out.
func (l *Ledger) Due(ctx context.Context, c Cell, limit int) (due, holdPassed []sale.Reservation, err error) {
	if err := checkCell(c); err != nil {
		return nil, nil, err
	}
	if limit < 1 || limit > maxDue {
		return nil, nil, fmt.Errorf("%w: limit %d, want 1 to %d", ErrArgument, limit, maxDue)
	}
	reply, err := l.call(ctx, dueScript, c, limit)
	if err != nil {
		return nil, nil, err
	}
	list := reply.([]any)
	if err := asError(dueScript.code(number(list[0]))); err != nil {
		return nil, nil, err
	}
	if due, err = unpackPairs(list[1]); err != nil {
		return nil, nil, err
	}
	holdPassed, err = unpackPairs(list[2])
	return due, holdPassed, err
}

// asError turns the refusals of whole calls into errors.
func asError(c Code) error {
	switch c {
	case Unopened:
		return ErrUnopened
	case Unproven:
		return ErrUnproven
	case Stale:
		return ErrStale
	}
	return nil
}
