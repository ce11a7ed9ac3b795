package lua

import (
	"context"
	"encoding/json"
	"fmt"

	"floodgate/sale"
)

var releaseScript = verb("release", Reserved, Again, Unknown, Unopened, Unproven)

// Release gives units and slots of orders back that hold nothing (failed, cancelled, closed), at most [MaxBatch], and
// publishes their outcomes. Reserved: given back now. Again: was released. Unknown: not here. Unopened: no meta or the
// item's stock is lost, so nothing moved. Unproven: nothing was written or published, release again later.
// An error means unanswered: release again.
func (l *Ledger) Release(ctx context.Context, c Cell, batch []Settlement) ([]Code, error) {
	return l.settle(ctx, releaseScript, c, batch, func(o sale.Code) bool {
		return o == sale.Failed || o == sale.Cancelled || o == sale.Closed
	})
}

// settle is the call that commit and release share.
func (l *Ledger) settle(ctx context.Context, s *script, c Cell, batch []Settlement, takes func(sale.Code) bool) ([]Code, error) {
	if err := checkCell(c); err != nil {
		return nil, err
	}
	if err := checkSize(len(batch), MaxBatch); err != nil || len(batch) == 0 {
		return nil, err
	}
	args := make([]any, 0, 3*len(batch))
	for i := range batch {
		o := &batch[i].Outcome
		if o.Token == "" || !clean(o.Token) || !clean(o.Reason) || !takes(o.Outcome) || o.OrderNo < 0 || o.PayBy < 0 || o.At < 0 {
			return nil, fmt.Errorf("%w: %s of %+v", ErrArgument, s.name, *o)
		}
		news, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("cannot write outcome of token %s: %w", o.Token, err)
		}
		args = append(args, (*string)(&o.Token), appendTail(nil, o.OrderNo, o.Outcome, o.Reason, o.PayBy, o.At), news)
	}
	reply, err := l.call(ctx, s, c, args...)
	if err != nil {
		return nil, err
	}
	codes := make([]Code, len(batch))
	s.eachCode(reply.(string), func(i int, code Code) { codes[i] = code })
	return codes, nil
}
