package worker

import (
	"context"
	"errors"
	"fmt"

	"floodgate/crashpoint"
	"floodgate/lua"
	"floodgate/sale"
)

// errUnproven says that the stock cannot be moved now: a recovery is due or under way, and the job is to be offered again.
var errUnproven = errors.New("the stock is not proven")

// maxRounds bounds the rounds of one placing: a clean batch needs one, every split (duplicates, shortage, a new epoch) one more.
const maxRounds = 8

// place turns the claims of one cell into rows, exactly one for each request token, and settles their reservations. The
// database row is the arbiter; Redis is told afterwards and may be told again. nil means that every token has its row. It may be
// called for the same tokens by any number of workers at once, and may be repeated after any failure.
func (w *Worker) place(ctx context.Context, j *job) error {
	claims := j.claims
	for range maxRounds {
		answers, epoch, err := w.ledger.Claim(ctx, j.cell, claims) // occupied, adopted, cannot be adopted, settled
		if err != nil {
			return unproven(err)
		}
		b, err := w.sort(ctx, j, claims, answers) // what each row should be
		if err != nil {
			return err
		}
		fenced, err := w.write(ctx, j.cell.Activity, epoch, b) // one transaction an item, fenced by the claim's epoch
		if err != nil {
			return err
		}
		crashpoint.At("worker.placed")
		if err := w.settle(ctx, j.cell, b.orders); err != nil { // commit or release in Redis, publish, mark announced
			return err
		}
		crashpoint.At("worker.committed")
		if len(fenced) == 0 {
			return nil
		}
		claims = fenced // another epoch stands in the database: claim again under it
	}
	w.wake() // a claim that keeps finding its epoch behind the database's starts a recovery
	return fmt.Errorf("activity %s: its epoch keeps changing: %w", j.cell.Activity, errUnproven)
}

// unproven makes one error of the ways in which Redis says that stock cannot move.
func unproven(err error) error {
	if errors.Is(err, lua.ErrUnproven) || errors.Is(err, lua.ErrUnopened) {
		return errUnproven
	}
	return err
}

// batch is one placing on its way: the rows to write, by item, and the orders that have their row.
type batch struct {
	claims map[sale.Token]lua.ClaimRequest
	rows   map[sale.ID][]sale.Order
	orders []sale.Order
}

// sort decides for every claim what its row should be. Tokens that are settled already are decided by the row that they have.
func (w *Worker) sort(ctx context.Context, j *job, claims []lua.ClaimRequest, answers []lua.ClaimAnswer) (*batch, error) {
	activity, err := w.activity(ctx, j.cell.Activity)
	if err != nil {
		return nil, err
	}
	b := &batch{claims: make(map[sale.Token]lua.ClaimRequest, len(claims)), rows: map[sale.ID][]sale.Order{}}
	var settled []sale.Token
	for i, c := range claims {
		if _, twice := b.claims[c.Token]; twice {
			continue
		}
		b.claims[c.Token] = c
		state, reason := fate(answers[i].Code, j.expire)
		switch {
		case reason == reasonUnproven:
			return nil, errUnproven
		case reason == reasonSettled:
			settled = append(settled, c.Token)
			continue
		}
		o := newOrder(&activity.Activity, c, answers[i].Reservation, w.now())
		o.State, o.Reason, o.Source = state, reason, j.source
		if state == sale.StateFailed {
			o.Slots = nil
		}
		if o.No, err = w.mint.next(c.User); err != nil {
			return nil, err
		}
		b.rows[c.Commodity] = append(b.rows[c.Commodity], o)
	}
	if len(settled) > 0 {
		b.orders, err = w.store.OrdersByToken(ctx, settled...)
	}
	return b, err
}

// Two fates that no row has.
const (
	reasonUnproven = "\x00unproven"
	reasonSettled  = "\x00settled"
)

// fate translates a claim's code into the row that the token should get.
func fate(code lua.Code, expire bool) (sale.OrderState, string) {
	switch code {
	case lua.Reserved, lua.Again:
		if expire {
			return sale.StateFailed, sale.ReasonExpired
		}
		return sale.StatePending, ""
	case lua.SoldOut:
		return sale.StateFailed, sale.ReasonSoldOut
	case lua.Duplicate:
		return sale.StateFailed, sale.ReasonDuplicate
	case lua.Settled:
		return 0, reasonSettled
	case lua.Unproven, lua.Unopened:
		return 0, reasonUnproven
	}
	panic(fmt.Sprintf("worker: unknown claim code %d", code))
}

// newOrder makes the pending row of a claim. Price and slots are the reservation's, where there is one.
func newOrder(a *sale.Activity, c lua.ClaimRequest, r sale.Reservation, now sale.Millis) sale.Order {
	o := sale.Order{
		Token: c.Token, User: c.User, Activity: a.ID, Commodity: c.Commodity, Quantity: c.Quantity, Price: c.Price,
		CreatedAt: now, UpdatedAt: now, PayBy: now + sale.Millis(a.PayWindow.Milliseconds()),
	}
	if item := a.Item(c.Commodity); item != nil {
		o.Title = item.Title
	}
	if r.Token == c.Token {
		o.Quantity, o.Price, o.Slots = r.Quantity, r.Price, r.Slots
	}
	return o
}
