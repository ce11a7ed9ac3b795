package lua

import (
	"context"

	"floodgate/sale"
)

var claimScript = verb("claim", Reserved, Again, Settled, SoldOut, Duplicate, Unopened, Unproven)

// Claim asks how to go on with up to [MaxBatch] tokens, and takes unit and slots for those that Redis has lost
// (adopting: the record's ReservedAt is now, so that its hold starts anew). The epoch is the one all answers were given
// under; fence the transaction by it. An error means unanswered: claim again.
func (l *Ledger) Claim(ctx context.Context, c Cell, batch []ClaimRequest) ([]ClaimAnswer, int64, error) {
	if err := checkClaim(c, batch); err != nil || len(batch) == 0 {
		return nil, 0, err
	}
	a := l.newArgs(claimScript, keysOf(c))
	for i := range batch {
		r := &batch[i]
		a.add((*string)(&r.Token), (*int64)(&r.User), (*int64)(&r.Commodity), &r.Quantity, (*int64)(&r.Price))
	}
	reply, err := l.run(ctx, claimScript, a)
	if err != nil {
		return nil, 0, err
	}
	return readClaim(reply.([]any), batch)
}

func checkClaim(c Cell, batch []ClaimRequest) error {
	if err := checkCell(c); err != nil {
		return err
	}
	if err := checkSize(len(batch), MaxBatch); err != nil {
		return err
	}
	for i := range batch {
		r := &batch[i]
		if err := checkUnit(r.Token, r.User, r.Commodity, r.Quantity); err != nil {
			return err
		}
		if err := checkPrice(r.Price); err != nil {
			return err
		}
	}
	return nil
}

func readClaim(reply []any, batch []ClaimRequest) ([]ClaimAnswer, int64, error) {
	answers := make([]ClaimAnswer, len(batch))
	claimScript.eachCode(reply[1].(string), func(i int, code Code) { answers[i].Code = code })
	for i := range reply[2:] {
		record := reply[i+2].(string)
		if record == "" {
			continue
		}
		r, err := unpack(batch[i].Token, record)
		if err != nil {
			return nil, 0, err
		}
		answers[i].Reservation = r
	}
	return answers, number(reply[0]), nil
}

// ClaimOf is the claim of a reservation that is due: what its message would ask for.
func ClaimOf(r *sale.Reservation) ClaimRequest {
	return ClaimRequest{Token: r.Token, User: r.User, Commodity: r.Commodity, Quantity: r.Quantity, Price: r.Price, At: r.ReservedAt}
}
