package sql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"floodgate/sale"
)

// tokensAtOnce bounds the ORs of one lookup: SQLite takes 1,000, and MariaDB turns each into one range of the unique key.
const tokensAtOnce = 200

// OrdersByToken reads the rows of request tokens, in no order; a token without a row is left out. The user in the token leads
// to the unique key, and so later to the user's shard.
func (s *Store) OrdersByToken(ctx context.Context, tokens ...sale.Token) ([]sale.Order, error) {
	return ordersByToken(s.db.WithContext(ctx), tokens)
}

func ordersByToken(db *gorm.DB, tokens []sale.Token) ([]sale.Order, error) {
	var out []sale.Order
	for part := range slices.Chunk(tokens, tokensAtOnce) {
		var where strings.Builder
		var args []any
		for _, t := range part {
			claims, err := t.Peek()
			if err != nil {
				continue // nothing is ever stored under what is not a token
			}
			if len(args) > 0 {
				where.WriteString(" OR ")
			}
			where.WriteString("(user_id = ? AND request_token = ?)")
			args = append(args, claims.User, t)
		}
		if len(args) == 0 {
			continue
		}
		orders, err := find(db.Where(where.String(), args...))
		if err != nil {
			return nil, fmt.Errorf("cannot read orders by token: %w", err)
		}
		out = append(out, orders...)
	}
	return out, nil
}

func find(q *gorm.DB) ([]sale.Order, error) {
	var rows []orderRow
	if err := q.Find(&rows).Error; err != nil {
		return nil, err
	}
	return ordersOf(rows)
}

// OrderByNo reads one order, or [ErrNotFound].
func (s *Store) OrderByNo(ctx context.Context, no sale.ID) (sale.Order, error) {
	orders, err := find(s.db.WithContext(ctx).Where("order_no = ?", no))
	if err == nil && len(orders) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return sale.Order{}, fmt.Errorf("order %s: %w", no, err)
	}
	return orders[0], nil
}

// OrdersOfUser lists a user's orders by number descending. The limit is cut to 1..101: a page and one that tells whether there is more.
func (s *Store) OrdersOfUser(ctx context.Context, p OrderPage) ([]sale.Order, error) {
	q := s.db.WithContext(ctx).Where("user_id = ?", p.User).Order("order_no DESC").Limit(min(max(p.Limit, 1), 101))
	if p.Before > 0 {
		q = q.Where("order_no < ?", p.Before)
	}
	orders, err := find(q)
	if err != nil {
		return nil, fmt.Errorf("cannot list the orders of a user: %w", err)
	}
	return orders, nil
}

// walkLimit is the most rows of one page of a walk over an activity: a few MB.
const walkLimit = 10_000

// OrdersOfActivity walks rows by number after the given one. See [API]; the limit is cut to 1..10,000.
func (s *Store) OrdersOfActivity(ctx context.Context, activity, after sale.ID, limit int, liveOnly bool) ([]sale.Order, error) {
	q := s.db.WithContext(ctx).Where("activity_id = ? AND order_no > ?", activity, after).Order("order_no").Limit(min(max(limit, 1), walkLimit))
	if liveOnly {
		q = q.Where("state IN ?", liveStates)
	}
	orders, err := find(q)
	if err != nil {
		return nil, fmt.Errorf("cannot list the orders of activity %s: %w", activity, err)
	}
	return orders, nil
}

// liveStates are the states that hold units, as [sale.OrderState.Live] says.
var liveStates = []sale.OrderState{sale.StatePending, sale.StatePaid}

// Unannounced lists rows changed before the instant whose outcome has not been announced, oldest first; limit 1..500.
func (s *Store) Unannounced(ctx context.Context, before sale.Millis, limit int) ([]sale.Order, error) {
	return s.UnannouncedAfter(ctx, sale.Order{}, before, limit)
}

// UnannouncedAfter is Unannounced behind the given row, by its UpdatedAt and No: rows that cannot be announced now, since their
// activity's stock is not proven, must not stand in the way of all that come after them.
func (s *Store) UnannouncedAfter(ctx context.Context, after sale.Order, before sale.Millis, limit int) ([]sale.Order, error) {
	q := s.db.WithContext(ctx).Where("announced = ? AND updated_at >= ? AND updated_at < ?", false, after.UpdatedAt, before).
		Where("updated_at > ? OR order_no > ?", after.UpdatedAt, after.No).
		Order("updated_at, order_no").Limit(min(max(limit, 1), pageLimit))
	orders, err := find(q)
	if err != nil {
		return nil, fmt.Errorf("cannot list unannounced orders: %w", err)
	}
	return orders, nil
}

// MarkAnnounced marks rows that still are in the state that was announced; a row that has moved on keeps waiting for its own
// announcement. Given twice it changes nothing.
func (s *Store) MarkAnnounced(ctx context.Context, orders []sale.Order) error {
	byState := map[sale.OrderState][]sale.ID{}
	for i := range orders {
		byState[orders[i].State] = append(byState[orders[i].State], orders[i].No)
	}
	for state, numbers := range byState {
		slices.Sort(numbers) // everybody locks in one direction
		for part := range slices.Chunk(numbers, pageLimit) {
			err := retry(ctx, func() error {
				_, err := exec(s.db.WithContext(ctx), "UPDATE orders SET announced = ? WHERE order_no IN ? AND state = ?", true, part, state)
				return err
			})
			if err != nil {
				return fmt.Errorf("cannot mark %d orders as announced: %w", len(part), err)
			}
		}
	}
	return nil
}
