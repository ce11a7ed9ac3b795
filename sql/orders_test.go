package sql

import (
	"errors"
	"slices"
	"testing"

	"floodgate/sale"
)

// settle moves an order's row as a payment or a close does: state and mark in one statement.
func settle(t testing.TB, s *Store, to sale.OrderState, orders ...sale.Order) {
	t.Helper()
	for _, o := range orders {
		_, err := exec(s.db.WithContext(t.Context()), "UPDATE orders SET state = ?, announced = ?, updated_at = ? WHERE order_no = ?", to, false, 1600, o.No)
		if err != nil {
			t.Error(err)
		}
	}
}

func TestOrdersByTokenReadsMany(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 1000, 0)
		var all []sale.Order
		for user := range sale.ID(MaxPlace) {
			all = append(all, b.order(user+1, 0))
		}
		b.place(t, s, 1, all...)
		got := must(s.OrdersByToken(t.Context(), tokens(all)...))(t)
		if len(got) != MaxPlace {
			t.Errorf("%d rows of %d", len(got), MaxPlace)
		}
		if got := must(s.OrdersByToken(t.Context()))(t); len(got) != 0 {
			t.Errorf("%d rows for no token", len(got))
		}
		if _, err := s.OrderByNo(t.Context(), 5); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown: got %v, want ErrNotFound", err)
		}
	})
}

func TestOrdersOfUserByPage(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 0)
		var mine []sale.ID
		for n := range 5 {
			o := b.order(7, n)
			mine = append(mine, o.No)
			b.place(t, s, 1, b.order(8, n), o)
		}
		slices.Reverse(mine)
		var got []sale.ID
		page := OrderPage{User: 7, Limit: 2}
		for range 3 {
			orders := must(s.OrdersOfUser(t.Context(), page))(t)
			got = append(got, nos(orders)...)
			page.Before = orders[len(orders)-1].No
		}
		if !slices.Equal(got, mine) {
			t.Errorf("got %v, want %v", got, mine)
		}
		if got := must(s.OrdersOfUser(t.Context(), page))(t); len(got) != 0 {
			t.Errorf("%d orders behind the last page", len(got))
		}
		if got := must(s.OrdersOfUser(t.Context(), OrderPage{User: 7, Limit: 100_000_000}))(t); len(got) != 5 {
			t.Errorf("%d orders, want 5", len(got))
		}
	})
}

func TestOrdersOfActivityWalk(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b, other := newBook(t, s, 10, 0), newBook(t, s, 10, 0)
		var all, live []sale.ID
		for user := range sale.ID(7) {
			o := b.order(user+1, 0)
			b.place(t, s, 1, o)
			other.place(t, s, 1, other.order(user+1, 0))
			all = append(all, o.No)
			switch user {
			case 2:
				settle(t, s, sale.StateClosed, o)
			case 3:
				settle(t, s, sale.StatePaid, o)
				live = append(live, o.No)
			default:
				live = append(live, o.No)
			}
		}
		for _, c := range []struct {
			liveOnly bool
			want     []sale.ID
		}{{false, all}, {true, live}} {
			var got []sale.ID
			for after := sale.ID(0); ; {
				page := must(s.OrdersOfActivity(t.Context(), b.activity, after, 3, c.liveOnly))(t)
				if len(page) == 0 {
					break
				}
				got, after = append(got, nos(page)...), page[len(page)-1].No
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("liveOnly %v: got %v, want %v", c.liveOnly, got, c.want)
			}
		}
	})
}

func TestUnannouncedUntilMarked(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 0)
		first, second, third := b.order(1, 0), b.order(2, 0), b.order(3, 0)
		second.UpdatedAt, third.UpdatedAt = 1400, 1501
		b.place(t, s, 1, first, second, third)
		due := func() []sale.ID { return nos(must(s.Unannounced(t.Context(), 1501, 10))(t)) }
		if got := due(); !slices.Equal(got, []sale.ID{second.No, first.No}) {
			t.Errorf("got %v, want the two changed before, oldest first", got)
		}
		if got := nos(must(s.UnannouncedAfter(t.Context(), second, 1501, 10))(t)); !slices.Equal(got, []sale.ID{first.No}) {
			t.Errorf("got %v behind the first page, want the rest of what was changed before", got)
		}
		for range 2 {
			ok(t, s.MarkAnnounced(t.Context(), []sale.Order{first}))
		}
		if got := due(); !slices.Equal(got, []sale.ID{second.No}) {
			t.Errorf("got %v, want the second", got)
		}
		settle(t, s, sale.StatePaid, second) // between the announcement of pending and its mark
		ok(t, s.MarkAnnounced(t.Context(), []sale.Order{second}))
		if o := must(s.OrderByNo(t.Context(), second.No))(t); o.Announced {
			t.Error("paid is marked by the announcement of pending")
		}
	})
}

func TestMarkAnnouncedRacesWithPaying(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 100, 0)
		var all []sale.Order
		for user := range sale.ID(60) {
			all = append(all, b.order(user+1, 0))
		}
		b.place(t, s, 1, all...)
		race(t, 6, func(n int) error {
			if n == 0 {
				settle(t, s, sale.StatePaid, all...)
				return nil
			}
			for part := range slices.Chunk(all, 10) {
				if err := s.MarkAnnounced(t.Context(), part); err != nil {
					return err
				}
			}
			return nil
		})
		for _, o := range must(s.OrdersOfActivity(t.Context(), b.activity, 0, 100, false))(t) {
			if o.State != sale.StatePaid || o.Announced {
				t.Errorf("order %s: state %d, announced %v", o.No, o.State, o.Announced)
			}
		}
	})
}

func TestSumsShowDamage(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 3)
		one, two := b.order(1, 0), b.order(2, 0, 1)
		b.place(t, s, 1, one, two, failed(b.order(3, 0), sale.ReasonExpired))
		if got, want := b.sums(t, s), (ItemSums{b.item, 10, 3, 3, 3, 3}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if users := must(s.OverLimit(t.Context(), b.activity, 2))(t); len(users) != 0 {
			t.Errorf("over the limit of 2: %v", users)
		}
		if users := must(s.OverLimit(t.Context(), b.activity, 1))(t); !slices.Equal(users, []sale.ID{2}) {
			t.Errorf("over the limit of 1: %v, want user 2", users)
		}
		must(exec(s.db.WithContext(t.Context()), "DELETE FROM orders WHERE order_no = ?", one.No))(t)
		if got := must(s.Sums(t.Context(), b.activity))(t)[0]; got.Sold != 3 || got.LiveUnits != 2 || got.SlotRows != 3 {
			t.Errorf("a missing row is not seen: %+v", got)
		}
		if _, err := s.Sums(t.Context(), 5); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown: got %v, want ErrNotFound", err)
		}
	})
}
