package sql

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"floodgate/sale"
)

// Sixteen placers get overlapping batches for an item that is too small for them all, while recoveries raise the epoch.
func TestPlaceRace(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		const users, stock, batches = 120, 150, 12
		b := newBook(t, s, stock+10, 10)
		var pool []sale.Order // for each user three requests that fight for two slots, and one that must fail
		for user := range sale.ID(users) {
			pool = append(pool, b.order(user+1, 0), b.order(user+1, 1), b.order(user+1, 0, 1), failed(b.order(user+1, 0), sale.ReasonExpired))
		}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		books := &ledger{rows: map[sale.ID]sale.Order{}}
		race(t, 16, func(n int) error {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			if n == 0 {
				for range 6 {
					if _, err := s.RaiseEpoch(t.Context(), b.activity); err != nil {
						return err
					}
				}
				return nil
			}
			for range batches {
				if err := placePart(t, s, b, pick(rng, pool), books); err != nil {
					return err
				}
			}
			return nil
		})
		books.check(t, s, b)
		if sum := b.sums(t, s); sum.Sold != stock {
			t.Errorf("sold %d of %d with more demand than stock", sum.Sold, stock)
		}
		if over := must(s.OverLimit(t.Context(), b.activity, 2))(t); len(over) > 0 {
			t.Errorf("users over the limit: %v", over)
		}
	})
}

// pick draws a batch and mints its numbers anew, as a worker does for a message that came again.
func pick(rng *rand.Rand, pool []sale.Order) []sale.Order {
	var rows []sale.Order
	for _, i := range rng.Perm(len(pool))[:60] {
		o := pool[i]
		o.No = nextNo()
		rows = append(rows, o)
	}
	return rows
}

// placePart places a batch as a worker does: it reads the epoch again where it was fenced.
func placePart(t testing.TB, s *Store, b *book, rows []sale.Order, books *ledger) error {
	for range 50 {
		a, err := s.Activity(t.Context(), b.activity)
		if err != nil {
			return err
		}
		got, err := s.Place(t.Context(), b.activity, b.item, a.Epoch, rows)
		if errors.Is(err, ErrFenced) {
			continue
		}
		if err != nil {
			return err
		}
		if n := len(got.Inserted) + len(got.Existing) + len(got.NoSlot) + len(got.NoStock) + len(got.SameNo); n != len(rows) {
			t.Errorf("%d rows given, %d answered", len(rows), n)
		}
		books.add(t, got.Inserted)
		return nil
	}
	return errors.New("fenced 50 times")
}

// ledger collects what the placers were told was inserted.
type ledger struct {
	mu   sync.Mutex
	rows map[sale.ID]sale.Order // by order number
}

func (l *ledger) add(t testing.TB, inserted []sale.Order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range inserted {
		if _, twice := l.rows[o.No]; twice {
			t.Errorf("order %s inserted twice", o.No)
		}
		l.rows[o.No] = o
	}
}

// check compares with the database: every row was reported by exactly one call, and no token has two.
func (l *ledger) check(t testing.TB, s *Store, b *book) {
	t.Helper()
	rows := must(s.OrdersOfActivity(t.Context(), b.activity, 0, walkLimit, false))(t)
	var told []sale.ID
	for no := range l.rows {
		told = append(told, no)
	}
	slices.SortFunc(told, cmp.Compare)
	if !slices.Equal(told, nos(rows)) {
		t.Errorf("%d rows in the database, %d reported as inserted", len(rows), len(told))
	}
	tokens := map[sale.Token]bool{}
	for _, o := range rows {
		if tokens[o.Token] {
			t.Errorf("two rows of token %s", o.Token)
		}
		tokens[o.Token] = true
	}
}
