package lua

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"floodgate/sale"
)

// auditor is a second implementation of the ledger, written from the rules and not from the scripts: it has no buyers
// hash and no remaining of its own making, but asks the reservations who holds what. It keeps no times.
type auditor struct {
	opened, proven, recovering bool
	status                     sale.Status
	limit                      int
	epoch, building, version   int64
	stock                      map[sale.ID]int64 // nil while a recovery builds
	loaded                     map[sale.ID]int64 // units that were ever put in
	res                        map[sale.Token]sale.Reservation
	shown                      map[sale.Token]bool // while a recovery builds: reservations its pages have written
	pending                    map[string]bool
	lots                       map[string]bool
}

func (a *auditor) live(t sale.Token) bool {
	r := a.res[t]
	return (r.State == sale.Occupied || r.State == sale.Committed) && (a.shown == nil || a.shown[t])
}

// slots are a user's slots of an item, as the reservations say.
func (a *auditor) slots(user, item sale.ID) map[int]sale.Token {
	out := map[int]sale.Token{}
	for t, r := range a.res {
		if r.User == user && r.Commodity == item && a.live(t) {
			for _, s := range r.Slots {
				out[s] = t
			}
		}
	}
	return out
}

func (a *auditor) move(item sale.ID, n int64) {
	was := a.stock[item]
	a.stock[item] += n
	if was == 0 || a.stock[item] == 0 {
		a.version++
	}
}

// blocked says why no stock may move.
func (a *auditor) blocked() Code {
	switch {
	case !a.opened && a.building >= 0:
		return Unproven
	case !a.opened:
		return Unopened
	case !a.proven:
		return Unproven
	}
	return 0
}

// take gives a request its units and slots, or says why not. What was taken before in the same batch counts.
func (a *auditor) take(token sale.Token, user, item sale.ID, quantity int, price sale.Cents, taken int64) (Code, []sale.Token) {
	remaining, sold := a.stock[item]
	if !sold {
		return Unopened, nil
	}
	slots := a.slots(user, item)
	if len(slots)+quantity > a.limit && len(slots) > 0 {
		var live []sale.Token
		for _, s := range slices.Sorted(maps.Keys(slots)) {
			if !slices.Contains(live, slots[s]) {
				live = append(live, slots[s])
			}
		}
		return Duplicate, live
	}
	if quantity > a.limit || int64(quantity) > remaining-taken {
		return SoldOut, nil
	}
	r := sale.Reservation{Token: token, State: sale.Occupied, User: user, Commodity: item, Quantity: quantity, Price: price, Outcome: sale.Accepted}
	for s := 0; len(r.Slots) < quantity; s++ {
		if _, held := slots[s]; !held {
			r.Slots = append(r.Slots, s)
		}
	}
	a.res[token] = r
	return Reserved, nil
}

func (a *auditor) reserve(item sale.ID, price sale.Cents, batch []ReserveRequest) (answers []ReserveAnswer) {
	refusal := a.blocked()
	if refusal == 0 && (a.recovering || a.status == sale.Paused) {
		refusal = Unproven
	}
	var taken int64
	var winners []string
	for _, q := range batch {
		r, known := a.res[q.Token]
		var x ReserveAnswer
		switch {
		case refusal != 0:
			x.Code = refusal
		case known && r.User == q.User && r.Commodity == item && r.Quantity == q.Quantity:
			x.Code = Again
		case known:
			x.Code = Reused
		case a.status == sale.Ended:
			x.Code = Ended
		default:
			if x.Code, x.Live = a.take(q.Token, q.User, item, q.Quantity, price, taken); x.Code == Reserved {
				taken += int64(q.Quantity)
				winners = append(winners, string(q.Token))
			}
		}
		answers = append(answers, x)
	}
	if taken > 0 {
		a.move(item, -taken)
		a.pending[strings.Join(winners, ",")] = true
	}
	return answers
}

func (a *auditor) claim(batch []ClaimRequest) (codes []Code) {
	var adopted []string
	for _, q := range batch {
		r, known := a.res[q.Token]
		c := a.blocked()
		switch {
		case c != 0:
		case known && r.State == sale.Occupied:
			c = Reserved
		case known:
			c = Settled
		default:
			if c, _ = a.take(q.Token, q.User, q.Commodity, q.Quantity, q.Price, 0); c == Reserved {
				a.move(q.Commodity, -int64(q.Quantity))
				adopted, c = append(adopted, string(q.Token)), Again
			}
		}
		codes = append(codes, c)
	}
	if len(adopted) > 0 {
		a.pending[strings.Join(adopted, ",")] = true
	}
	return codes
}

func (a *auditor) commit(batch []Settlement) (codes []Code) {
	for _, s := range batch {
		r, known := a.res[s.Outcome.Token]
		c := a.blocked()
		switch {
		case c != 0:
		case !known || r.State == sale.Released:
			c = Unknown
		case r.State == sale.Committed && r.Outcome == sale.Paid && s.Outcome.Outcome == sale.PendingPayment:
			c = Again
		default:
			c = map[sale.ReservationState]Code{sale.Occupied: Reserved, sale.Committed: Again}[r.State]
			a.settle(r, sale.Committed, s.Outcome)
		}
		codes = append(codes, c)
	}
	return codes
}

func (a *auditor) settle(r sale.Reservation, state sale.ReservationState, o sale.Outcome) {
	r.State, r.OrderNo, r.Outcome, r.Reason, r.PayBy, r.SettledAt = state, o.OrderNo, o.Outcome, o.Reason, o.PayBy, o.At
	a.res[r.Token] = r
}

func (a *auditor) release(batch []Settlement) (codes []Code) {
	back := map[sale.ID]int64{}
	var done []string
	for _, s := range batch {
		r, known := a.res[s.Outcome.Token]
		c := a.blocked()
		switch {
		case c != 0:
		case !known:
			c = Unknown
		case r.State == sale.Released:
			c = Again
		default:
			c = Reserved
			back[r.Commodity] += int64(r.Quantity)
			a.settle(r, sale.Released, s.Outcome)
			done = append(done, string(r.Token))
		}
		codes = append(codes, c)
	}
	for item, n := range back {
		a.move(item, n)
	}
	if len(done) > 0 {
		a.pending["!"+strings.Join(done, ",")] = true
	}
	return codes
}

// due looks at the first members in their order; the test has made all of them due.
func (a *auditor) due(limit int) (due []sale.Token) {
	members := slices.Sorted(maps.Keys(a.pending))
	for _, member := range members[:min(limit, len(members))] {
		delete(a.pending, member)
		list, forget := strings.CutPrefix(member, "!")
		var rest []string
		for _, t := range strings.Split(list, ",") {
			switch r := a.res[sale.Token(t)]; {
			case forget && r.State == sale.Released:
				delete(a.res, sale.Token(t))
			case !forget && r.State == sale.Occupied:
				rest = append(rest, t)
				due = append(due, sale.Token(t))
			}
		}
		if len(rest) > 0 {
			a.pending[strings.Join(rest, ",")] = true
		}
	}
	return due
}

func (a *auditor) restock(item sale.ID, n, epoch int64, lot string) Code {
	if c := a.blocked(); c != 0 {
		return c
	}
	if epoch != a.epoch {
		return Stale
	}
	if a.lots[lot] {
		return Again
	}
	a.lots[lot] = true
	a.stock[item] += n
	a.loaded[item] += n
	a.version++
	return Reserved
}

// balance says where the books do not: remaining + occupied + committed == loaded, no slot held twice.
func (a *auditor) balance() error {
	if !a.opened || a.stock == nil {
		return nil
	}
	for item, loaded := range a.loaded {
		units := a.stock[item]
		for t, r := range a.res {
			if r.Commodity == item && a.live(t) {
				units += int64(r.Quantity)
			}
		}
		if units != loaded || a.stock[item] < 0 {
			return fmt.Errorf("item %d: %d remain, %d with what is held, %d were loaded", item, a.stock[item], units, loaded)
		}
	}
	return nil
}
