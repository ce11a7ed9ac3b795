package lua

import (
	"context"

	"floodgate/sale"
)

var describeScript = verb("describe", Reserved, Unopened)

// Describe writes status, window, limit and catalog of an open activity, and moves the expiry of all its keys.
// It touches neither stock nor identity nor `recovering`. ErrUnopened where there is nothing to describe.
func (l *Ledger) Describe(ctx context.Context, a sale.Activity) error {
	args, err := activityArgs(&a)
	if err != nil {
		return err
	}
	code, err := l.callCode(ctx, describeScript, cellOf(&a), args...)
	if err != nil {
		return err
	}
	return asError(code)
}
