package worker

import (
	"context"
	"time"

	"floodgate/sale"
	"floodgate/sql"
)

// announcer clears the `announced = 0` mark of rows whose outcome stands in Redis and was published. It is off the way of a
// purchase: a mark that is lost here only makes the sweep tell the outcome once more.
type announcer struct {
	store *sql.Store
	told  chan []sale.Order
}

// announceGap lets marks gather: one statement for what a few batches have told.
const announceGap = 50 * time.Millisecond

func newAnnouncer(store *sql.Store) *announcer {
	return &announcer{store: store, told: make(chan []sale.Order, 256)}
}

// mark hands orders over without waiting; where too many wait they are left to the sweep.
func (a *announcer) mark(orders []sale.Order) {
	if len(orders) == 0 {
		return
	}
	select {
	case a.told <- orders:
	default:
	}
}

// run clears marks until ctx ends, then those that wait.
func (a *announcer) run(ctx context.Context) error {
	for {
		select {
		case orders := <-a.told:
			t := time.NewTimer(announceGap)
			select {
			case <-t.C:
			case <-ctx.Done():
			}
			t.Stop()
			a.clear(ctx, a.gather(orders))
		case <-ctx.Done():
			select {
			case orders := <-a.told:
				a.clear(ctx, a.gather(orders))
			default:
			}
			return nil
		}
	}
}

func (a *announcer) gather(orders []sale.Order) []sale.Order {
	for len(orders) < 2000 {
		select {
		case more := <-a.told:
			orders = append(orders, more...)
		default:
			return orders
		}
	}
	return orders
}

func (a *announcer) clear(ctx context.Context, orders []sale.Order) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	_ = a.store.MarkAnnounced(ctx, orders) // failing costs one more announcement by the sweep, nothing else
}
