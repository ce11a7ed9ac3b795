package sql

import (
	"errors"
	"reflect"
	"testing"

	"floodgate/sale"
)

func TestPlaceKeepsEveryField(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 0)
		o := b.order(1<<63-1, 0, 3)
		o.Source, o.Announced = sale.FromSweep, true
		f := failed(b.order(42, 0), sale.ReasonExpired)
		want(t, b.place(t, s, 1, o, f), []sale.Order{o, f}, nil, nil, nil, nil)

		o.Announced = false // a new row has never been announced
		got := must(s.OrderByNo(t.Context(), o.No))(t)
		if !reflect.DeepEqual(got, o) {
			t.Errorf("got %+v\nwant %+v", got, o)
		}
		byToken := must(s.OrdersByToken(t.Context(), f.Token, "nonsense", b.order(9, 0).Token))(t)
		if len(byToken) != 1 || !reflect.DeepEqual(byToken[0], f) {
			t.Errorf("got %+v\nwant %+v", byToken, f)
		}
		if sum := b.sums(t, s); sum.Sold != 2 {
			t.Errorf("sold %d, want 2: quantities count units", sum.Sold)
		}
	})
}

func TestPlaceIsFenced(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 0)
		o := b.order(1, 0)
		if epoch := must(s.RaiseEpoch(t.Context(), b.activity))(t); epoch != 2 {
			t.Fatalf("epoch %d, want 2", epoch)
		}
		for _, rows := range [][]sale.Order{{o}, {failed(o, sale.ReasonSoldOut)}, {o, failed(b.order(2, 0), sale.ReasonSoldOut)}} {
			if _, err := s.Place(t.Context(), b.activity, b.item, 1, rows); !errors.Is(err, ErrFenced) {
				t.Errorf("got %v, want ErrFenced", err)
			}
		}
		if rows := must(s.OrdersOfActivity(t.Context(), b.activity, 0, 10, false))(t); len(rows) > 0 {
			t.Errorf("%d rows written past the fence", len(rows))
		}
		b.sums(t, s)
		want(t, b.place(t, s, 2, o), []sale.Order{o}, nil, nil, nil, nil)
	})
}

func TestPlaceRefusesWhatWouldBreakTheSums(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 0)
		change := func(f func(o *sale.Order)) sale.Order { o := b.order(1, 0); f(&o); return o }
		for name, o := range map[string]sale.Order{
			"another item":      change(func(o *sale.Order) { o.Commodity++ }),
			"another activity":  change(func(o *sale.Order) { o.Activity++ }),
			"no slot":           change(func(o *sale.Order) { o.Slots = nil }),
			"too many slots":    change(func(o *sale.Order) { o.Slots = []int{0, 1} }),
			"a paid one":        change(func(o *sale.Order) { o.State = sale.StatePaid }),
			"failed with slots": change(func(o *sale.Order) { o.State = sale.StateFailed }),
			"no number":         change(func(o *sale.Order) { o.No = 0 }),
			"no token":          change(func(o *sale.Order) { o.Token = "" }),
			"no units":          change(func(o *sale.Order) { o.Quantity, o.Slots = 0, nil }),
		} {
			if _, err := s.Place(t.Context(), b.activity, b.item, 1, []sale.Order{o}); err == nil {
				t.Errorf("%s: taken", name)
			}
		}
		if _, err := s.Place(t.Context(), b.activity, b.item, 1, make([]sale.Order, MaxPlace+1)); err == nil {
			t.Error("501 rows: taken")
		}
		if _, err := s.Place(t.Context(), 5, b.item, 1, []sale.Order{change(func(o *sale.Order) { o.Activity = 5 })}); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown activity: got %v, want ErrNotFound", err)
		}
		b.sums(t, s)
	})
}

func TestPlaceSplitsDuplicates(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 100, 0)
		old := b.order(1, 0)
		b.place(t, s, 1, old)

		again := old // the same message, a new number
		again.No = nextNo()
		tombstone := failed(old, sale.ReasonExpired)
		sameSlot := b.order(1, 1, 0)
		sameNo := b.order(2, 0)
		sameNo.No = old.No
		clean, other, lost := b.order(3, 0), b.order(1, 2), failed(b.order(4, 0), sale.ReasonSoldOut)
		got := b.place(t, s, 1, clean, again, sameSlot, sameNo, other, lost, tombstone)
		want(t, got, []sale.Order{clean, other, lost}, []sale.Order{old, old}, []sale.Order{sameSlot}, nil, []sale.Order{sameNo})
		if sum := b.sums(t, s); sum.Sold != 3 {
			t.Errorf("sold %d, want 3", sum.Sold)
		}
		want(t, b.place(t, s, 1, clean, other, lost), []sale.Order{clean, other, lost}, nil, nil, nil, nil) // the same rows once more are found, not made twice
		if sum := b.sums(t, s); sum.Sold != 3 {
			t.Errorf("sold %d after a repeat, want 3", sum.Sold)
		}
	})
}

func TestPlaceSplitsTwinsInOneBatch(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 100, 0)
		first, slot, number := b.order(1, 0), b.order(1, 0), b.order(2, 0)
		twin := first
		twin.No = nextNo()
		number.No = first.No
		want(t, b.place(t, s, 1, first, twin, slot, number, first), []sale.Order{first}, []sale.Order{first, first}, []sale.Order{slot}, nil, []sale.Order{number})
		b.sums(t, s)
	})
}

func TestPlaceInsertsWhatFits(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 6, 2) // 4 to sell, 2 are the fallback's
		one, three, two, last := b.order(1, 0), b.order(2, 0, 1, 2), b.order(3, 0, 1), b.order(4, 0)
		lost := failed(b.order(5, 0), sale.ReasonDuplicate)
		got := b.place(t, s, 1, one, two, three, last, lost)
		want(t, got, []sale.Order{one, two, last, lost}, nil, nil, []sale.Order{three}, nil)
		if sum := b.sums(t, s); sum.Sold != 4 {
			t.Errorf("sold %d, want 4", sum.Sold)
		}
		full := b.order(6, 0)
		want(t, b.place(t, s, 1, full, last), []sale.Order{last}, nil, nil, []sale.Order{full}, nil)
		lost = failed(full, sale.ReasonSoldOut) // a tombstone needs no unit
		want(t, b.place(t, s, 1, lost), []sale.Order{lost}, nil, nil, nil, nil)
	})
}

// Case 8: the database has 1 left, Redis (wrongly) 2.
func TestCase8OneLeftForTwo(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 1, 0)
		u1, u2 := b.order(1, 0), b.order(2, 0)
		want(t, b.place(t, s, 1, u1, u2), []sale.Order{u1}, nil, nil, []sale.Order{u2}, nil)
		lost := failed(u2, sale.ReasonSoldOut)
		want(t, b.place(t, s, 1, lost), []sale.Order{lost}, nil, nil, nil, nil)
		if sum := b.sums(t, s); sum.Sold != 1 {
			t.Errorf("sold %d, want 1", sum.Sold)
		}
	})
}
