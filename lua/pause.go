package lua

import "context"

var pauseScript = verb("pause", Reserved, Again, Unopened)

// Pause makes reserve answer Unproven; what was reserved goes on. Pausing what is paused or ended changes nothing.
// ErrUnopened where there is nothing to pause.
func (l *Ledger) Pause(ctx context.Context, c Cell) error {
	if err := checkCell(c); err != nil {
		return err
	}
	code, err := l.callCode(ctx, pauseScript, c)
	if err != nil {
		return err
	}
	return asError(code)
}
