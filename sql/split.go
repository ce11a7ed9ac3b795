package sql

import (
	"fmt"
	"slices"

	"gorm.io/gorm"

	"floodgate/sale"
)

// split takes out of todo what a unique key refuses, under the lock of the item's row. An error 1062 names one key of one
// row (and SQLite none), so the keys are looked up: tokens, order numbers, slots, and twins inside the batch. A row that
// stands under its own number was written by this very call, whose COMMIT was not answered.
func split(tx *gorm.DB, b batch) (batch, error) {
	b.todo = slices.Clone(b.todo) // the batch may be tried again
	stored, err := ordersByToken(tx, tokens(b.todo))
	if err != nil {
		return b, err
	}
	b.drop(b.storedRows(stored))
	taken, err := b.takenKeys(tx)
	if err != nil {
		return b, err
	}
	b.drop(func(o *sale.Order) bool { return b.refuse(o, taken) })
	return b, nil
}

// drop removes the rows of todo that take says it has put elsewhere.
func (b *batch) drop(take func(o *sale.Order) bool) {
	b.todo = slices.DeleteFunc(b.todo, func(o sale.Order) bool { return take(&o) })
}

// storedRows puts rows whose token is in the database among the inserted (our own number, the state we asked for) or the existing.
func (b *batch) storedRows(stored []sale.Order) func(o *sale.Order) bool {
	byToken := make(map[sale.Token]*sale.Order, len(stored))
	for i := range stored {
		byToken[stored[i].Token] = &stored[i]
	}
	return func(o *sale.Order) bool {
		row := byToken[o.Token]
		switch {
		case row == nil:
			return false
		case row.No == o.No && row.State == o.State:
			b.out.Inserted = append(b.out.Inserted, *o)
		default:
			b.out.Existing = append(b.out.Existing, *row)
		}
		return true
	}
}

// slotKey is a unique key of slots within one item.
type slotKey struct {
	user sale.ID
	slot int
}

// keys are the unique keys in use: by other rows of the database, and by the rows of the batch let through so far.
type keys struct {
	tokens  map[sale.Token]bool
	numbers map[sale.ID]bool
	slots   map[slotKey]bool
}

// refuse puts a row whose token, number or slot is taken where it belongs. The keys of a row let through are noted as taken.
func (b *batch) refuse(o *sale.Order, k keys) bool {
	held := slices.ContainsFunc(o.Slots, func(n int) bool { return k.slots[slotKey{o.User, n}] })
	twin := k.tokens[o.Token]
	k.tokens[o.Token] = true
	switch {
	case twin:
		b.twins = append(b.twins, *o)
	case k.numbers[o.No]:
		b.out.SameNo = append(b.out.SameNo, *o)
	case held:
		b.out.NoSlot = append(b.out.NoSlot, *o)
	default:
		k.numbers[o.No] = true
		for _, n := range o.Slots {
			k.slots[slotKey{o.User, n}] = true
		}
		return false
	}
	return true
}

// settled gives the second use of a token in one batch what the first one got.
func (b *batch) settled() Placed {
	rows := map[sale.Token]sale.Order{}
	for _, o := range slices.Concat(b.out.Inserted, b.out.Existing) {
		rows[o.Token] = o
	}
	for _, twin := range b.twins {
		same := func(o sale.Order) bool { return o.Token == twin.Token }
		if row, ok := rows[twin.Token]; ok {
			b.out.Existing = append(b.out.Existing, row)
			continue
		}
		for _, list := range []*[]sale.Order{&b.out.NoSlot, &b.out.NoStock, &b.out.SameNo} {
			if slices.ContainsFunc(*list, same) {
				*list = append(*list, twin)
				break
			}
		}
	}
	return b.out
}

// takenKeys reads which order numbers and slots of the batch are in use.
func (b *batch) takenKeys(tx *gorm.DB) (keys, error) {
	k := keys{map[sale.Token]bool{}, map[sale.ID]bool{}, map[slotKey]bool{}}
	if len(b.todo) == 0 {
		return k, nil
	}
	var numbers, users []sale.ID
	for i := range b.todo {
		numbers, users = append(numbers, b.todo[i].No), append(users, b.todo[i].User)
	}
	var taken []sale.ID
	if err := tx.Model(&orderRow{}).Where("order_no IN ?", numbers).Pluck("order_no", &taken).Error; err != nil {
		return k, fmt.Errorf("cannot look up order numbers: %w", err)
	}
	for _, no := range taken {
		k.numbers[no] = true
	}
	var rows []slotRow
	err := tx.Where("user_id IN ? AND activity_id = ? AND commodity_id = ?", users, b.activity, b.commodity).Find(&rows).Error
	if err != nil {
		return k, fmt.Errorf("cannot look up slots: %w", err)
	}
	for i := range rows {
		k.slots[slotKey{rows[i].UserID, rows[i].Slot}] = true
	}
	return k, nil
}

func tokens(orders []sale.Order) []sale.Token {
	out := make([]sale.Token, len(orders))
	for i := range orders {
		out[i] = orders[i].Token
	}
	return out
}
