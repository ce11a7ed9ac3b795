package lua

import (
	"context"
	"strings"

	"floodgate/sale"
)

var reserveScript = verb("reserve", Reserved, Again, SoldOut, Unopened, Duplicate, NotStarted, Ended, Unproven, Reused)

// Reserve takes units of one item for up to [MaxReserve] requests, each answered in its place. Requests are decided in
// order; a token that stands twice is Again the second time. An error means unanswered: the units may be taken, so ask
// again with the same tokens and never give back. ErrArgument alone says that nothing was sent.
//
// Where a batch that got no answer is asked again, all answers are Again and Pending names the member of the first try,
// if the batch is the same.
func (l *Ledger) Reserve(ctx context.Context, c Cell, commodity sale.ID, price sale.Cents, batch []ReserveRequest) (ReserveReply, error) {
	if err := checkReserve(c, commodity, price, batch); err != nil || len(batch) == 0 {
		return ReserveReply{}, err
	}
	a := l.newArgs(reserveScript, keysOf(c))
	a.add((*int64)(&commodity), (*int64)(&price))
	for i := range batch {
		r := &batch[i]
		a.add((*string)(&r.Token), (*int64)(&r.User), &r.Quantity)
	}
	reply, err := l.run(ctx, reserveScript, a)
	if err != nil {
		return ReserveReply{}, err
	}
	return readReserve(reply.([]any), batch), nil
}

func checkReserve(c Cell, commodity sale.ID, price sale.Cents, batch []ReserveRequest) error {
	if err := checkCell(c); err != nil {
		return err
	}
	if err := checkSize(len(batch), MaxReserve); err != nil {
		return err
	}
	if err := checkPrice(price); err != nil {
		return err
	}
	for i := range batch {
		if err := checkUnit(batch[i].Token, batch[i].User, commodity, batch[i].Quantity); err != nil {
			return err
		}
	}
	return nil
}

func readReserve(reply []any, batch []ReserveRequest) ReserveReply {
	r := ReserveReply{
		Answers: make([]ReserveAnswer, len(batch)), Remaining: number(reply[0]), Epoch: number(reply[1]), Version: number(reply[2]),
		At: sale.Millis(number(reply[3])), LedgerID: reply[4].(string),
	}
	live := reply[6:]
	reserveScript.eachCode(reply[5].(string), func(i int, code Code) {
		r.Answers[i].Code = code
		if code == Duplicate {
			r.Answers[i].Live, live = tokens(live[0].(string)), live[1:]
		}
	})
	r.Pending = pendingMember(batch, r.Answers)
	return r
}

// pendingMember joins the tokens that were reserved, as the script did; where none was, those that had been before.
func pendingMember(batch []ReserveRequest, answers []ReserveAnswer) string {
	if member := joinTokens(batch, answers, Reserved); member != "" {
		return member
	}
	return joinTokens(batch, answers, Again)
}

func joinTokens(batch []ReserveRequest, answers []ReserveAnswer, code Code) string {
	var b strings.Builder
	for i := range answers {
		if answers[i].Code != code {
			continue
		}
		if b.Len() == 0 {
			b.Grow(len(batch) * (sale.TokenLen + 1))
		} else {
			b.WriteByte(',')
		}
		b.WriteString(string(batch[i].Token))
	}
	return b.String()
}
