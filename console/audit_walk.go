package console

import (
	"context"
	"slices"

	"floodgate/lua"
	"floodgate/sale"
)

// auditPage is how many records, rows or buyers are compared at once.
const auditPage = lua.MaxBatch

// walk compares every reservation with its row and its buyer, every live row with its reservation, and every buyer with the
// reservations that hold the slots. Which of them is wrong when they differ is a person's to find out.
func (b *book) walk(ctx context.Context) error {
	var records int64
	err := b.ledger.Scan(ctx, b.cell, func(page []sale.Reservation) error {
		records += int64(len(page))
		for part := range slices.Chunk(page, auditPage) {
			if err := b.reservations(ctx, part); err != nil {
				return err
			}
		}
		return b.unmoved(ctx)
	})
	if err != nil {
		return err
	}
	if records != b.seen.redis.Reserved {
		return errMoved // a hash that is being resized gives some twice
	}
	if err := b.rows(ctx); err != nil {
		return err
	}
	return b.buyers(ctx)
}

// unmoved ends a walk early that cannot be exact any more.
func (b *book) unmoved(ctx context.Context) error {
	s, err := b.ledger.Inspect(ctx, b.cell)
	if err == nil && s.LedgerID != b.seen.redis.LedgerID {
		err = errMoved
	}
	return err
}

// reservations judges one page of Redis's records.
func (b *book) reservations(ctx context.Context, page []sale.Reservation) error {
	tokens := make([]sale.Token, len(page))
	holders := make([]lua.Holder, len(page))
	for i, r := range page {
		tokens[i], holders[i] = r.Token, lua.Holder{User: r.User, Commodity: r.Commodity}
	}
	rows, err := rowsOf(ctx, b.store, tokens)
	if err != nil {
		return err
	}
	slots, err := b.ledger.Holders(ctx, b.cell, holders...)
	if err != nil {
		return err
	}
	for i := range page {
		b.reservation(&page[i], liveRow(rows, page[i].Token), rows[page[i].Token], slots[i])
	}
	return nil
}

func (b *book) reservation(r *sale.Reservation, live, row *sale.Order, slots []sale.Token) {
	f := Finding{Commodity: r.Commodity, Token: r.Token, User: r.User}
	item := b.items[r.Commodity]
	switch {
	case item == nil:
		f.Check = "unknown-item"
		b.found(f, "reservation %s is of item %s, which the activity does not have", r.Token, r.Commodity)
		return
	case r.State == sale.Released:
		if f.Check = "released-with-row"; live != nil {
			b.found(f, "reservation %s gave its units back, and order %s is %s", r.Token, live.No, live.State.Outcome())
		}
		return
	case r.State == sale.Committed:
		item.Committed += int64(r.Quantity)
		if f.Check = "committed-without-row"; live == nil {
			b.found(f, "reservation %s of user %s is committed as order %s, and has no live row", r.Token, r.User, r.OrderNo)
		}
	default:
		item.Reserved += int64(r.Quantity)
		if live == nil {
			item.Occupied += int64(r.Quantity)
		}
	}
	b.sameBuyer(r, row)
	for _, n := range r.Slots {
		if n >= len(slots) || slots[n] != r.Token {
			f.Check = "slot-missing"
			b.found(f, "reservation %s holds slot %d of user %s, and the buyers in Redis do not say so", r.Token, n, r.User)
		}
	}
	if f.Check = "slot-count"; len(r.Slots) != r.Quantity {
		b.found(f, "reservation %s has %d units and %d slots", r.Token, r.Quantity, len(r.Slots))
	}
}

// sameBuyer compares a held reservation with its token and its row.
func (b *book) sameBuyer(r *sale.Reservation, row *sale.Order) {
	f := Finding{Check: "another-user", Commodity: r.Commodity, Token: r.Token, User: r.User}
	if claims, err := r.Token.Peek(); err != nil || claims.User != r.User || claims.Activity != b.cell.Activity {
		b.found(f, "reservation %s is user %s's, and the token was made for user %s of activity %s", r.Token, r.User, claims.User, claims.Activity)
	}
	if f.Check = "record-and-row"; row == nil {
		return
	}
	if row.User != r.User || row.Commodity != r.Commodity || row.Quantity != r.Quantity || row.Price != r.Price ||
		r.State == sale.Committed && row.No != r.OrderNo {
		b.found(f, "reservation %s (user %s, item %s, %d for %s, order %s) and its row (user %s, item %s, %d for %s, order %s) differ", r.Token,
			r.User, r.Commodity, r.Quantity, r.Price, r.OrderNo, row.User, row.Commodity, row.Quantity, row.Price, row.No)
	}
}

// rows looks for live rows that Redis does not know.
func (b *book) rows(ctx context.Context) error {
	for after := sale.ID(0); ; {
		page, err := b.store.OrdersOfActivity(ctx, b.cell.Activity, after, auditPage, true)
		if err != nil || len(page) == 0 {
			return err
		}
		tokens := make([]sale.Token, len(page))
		for i := range page {
			tokens[i] = page[i].Token
		}
		known, err := b.ledger.Reservations(ctx, b.cell, tokens...)
		if err != nil {
			return err
		}
		for _, o := range page {
			if r, ok := known[o.Token]; !ok {
				b.found(Finding{Check: "row-without-record", Commodity: o.Commodity, Token: o.Token, User: o.User},
					"order %s of user %s is %s, and Redis has no reservation %s", o.No, o.User, o.State.Outcome(), o.Token)
			} else if r.State == sale.Committed && r.OrderNo != o.No {
				b.found(Finding{Check: "two-rows", Commodity: o.Commodity, Token: o.Token, User: o.User},
					"reservation %s is order %s, and order %s has the same token", o.Token, r.OrderNo, o.No)
			}
		}
		after = page[len(page)-1].No
		if err := b.unmoved(ctx); err != nil {
			return err
		}
	}
}

// buyer is one field of the buyers in Redis.
type buyer struct {
	user, commodity sale.ID
	slots           []sale.Token
}

// buyers judges who holds slots.
func (b *book) buyers(ctx context.Context) error {
	var page []buyer
	var tokens int
	flush := func() error {
		defer func() { page, tokens = page[:0], 0 }()
		return b.holders(ctx, page)
	}
	err := b.ledger.Buyers(ctx, b.cell, func(user, commodity sale.ID, slots []sale.Token) error {
		page, tokens = append(page, buyer{user, commodity, slots}), tokens+len(slots)
		if tokens+sale.MaxQuantity <= auditPage {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

func (b *book) holders(ctx context.Context, page []buyer) error {
	var tokens []sale.Token
	for _, u := range page {
		for _, t := range u.slots {
			if t != "" && !slices.Contains(tokens, t) {
				tokens = append(tokens, t)
			}
		}
	}
	known := map[sale.Token]sale.Reservation{}
	for part := range slices.Chunk(tokens, lua.MaxBatch) {
		some, err := b.ledger.Reservations(ctx, b.cell, part...)
		if err != nil {
			return err
		}
		for t, r := range some {
			known[t] = r
		}
	}
	for _, u := range page {
		b.holder(u, known)
	}
	return nil
}

func (b *book) holder(u buyer, known map[sale.Token]sale.Reservation) {
	held := 0
	for n, t := range u.slots {
		if t == "" {
			continue
		}
		held++
		r, ok := known[t]
		if !ok || r.State == sale.Released || r.User != u.user || r.Commodity != u.commodity || !slices.Contains(r.Slots, n) {
			b.found(Finding{Check: "slot-without-record", Commodity: u.commodity, Token: t, User: u.user},
				"user %s holds slot %d of item %s in Redis for reservation %s, which does not hold it", u.user, n, u.commodity, t)
		}
	}
	if item := b.items[u.commodity]; item != nil {
		item.BuyersUnits += int64(held)
	}
	if held > b.out.Limit {
		b.found(Finding{Check: "limit-redis", Commodity: u.commodity, User: u.user}, "user %s holds %d units of item %s in Redis, the limit is %d", u.user, held, u.commodity, b.out.Limit)
	}
}
