package lua

import "context"

var resumeScript = verb("resume", Reserved, Again, Unopened)

// Resume lets a paused activity sell again. It lifts nothing else: an ended or recovering one, or one on another Redis
// than the proven one, stays so. ErrUnopened where there is nothing to resume.
func (l *Ledger) Resume(ctx context.Context, c Cell) error {
	if err := checkCell(c); err != nil {
		return err
	}
	code, err := l.callCode(ctx, resumeScript, c)
	if err != nil {
		return err
	}
	return asError(code)
}
