package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/lua"
	"floodgate/sale"
)

const reserveBatch = 64

// reserve measures the ledger alone: one client, one call of 64 after the other, and what a purchase costs as stock grows.
func (b *bench) reserve(ctx context.Context) error {
	s, err := b.newShop(ctx)
	if err != nil {
		return err
	}
	defer b.closing(ctx, s)()
	rdb := redis.NewUniversalClient(b.opt.Redis)
	defer rdb.Close()
	r := &reserver{b: b, s: s, rdb: rdb, next: sale.ID(time.Now().UnixMilli()) << 16}
	if err := r.speed(ctx); err != nil {
		return err
	}
	b.report.atLeast("reserve_64_per_s", 60_000)
	if err := r.growth(ctx); err != nil {
		return err
	}
	b.report.atMost("growth_most_over_least", 1.15)
	return nil
}

// reserver is one client of the ledger with activities that exist in Redis only.
type reserver struct {
	b    *bench
	s    *shop
	rdb  redis.UniversalClient
	next sale.ID // id of the next activity: out of the way of real ones, which are milliseconds
}

// open makes an activity with so many units.
func (r *reserver) open(ctx context.Context, units int64) (lua.Cell, error) {
	r.next++
	now := sale.At(time.Now())
	a := sale.Activity{ID: r.next, Title: "bench", StartsAt: now - 1000, EndsAt: now + 3_600_000, PerUserLimit: 1, PayWindow: time.Minute, Status: sale.Live,
		Items: []sale.Item{{Commodity: commodity, Title: "unit", Price: 9900, Total: units}}}
	r.s.sold = append(r.s.sold, a.ID)
	code, err := r.s.ledger.Open(ctx, a, 1, map[sale.ID]int64{commodity: units})
	if err == nil && code != lua.Reserved {
		err = fmt.Errorf("opening answers %d", code)
	}
	return lua.Cell{Activity: a.ID}, err
}

// batches makes n requests of users who have not come before, in batches.
func (r *reserver) batches(c lua.Cell, n, size int) [][]lua.ReserveRequest {
	var out [][]lua.ReserveRequest
	expires := sale.At(time.Now().Add(9*time.Minute)) / 1000 * 1000
	for n > 0 {
		batch := make([]lua.ReserveRequest, min(n, size))
		for i := range batch {
			r.b.user++
			user := sale.ID(r.b.user)
			batch[i] = lua.ReserveRequest{User: user, Quantity: 1,
				Token: r.s.tokens.Sign(sale.TokenClaims{User: user, Activity: c.Activity, Nonce: rand.Uint64(), Expires: expires})}
		}
		out = append(out, batch)
		n -= len(batch)
	}
	return out
}

// take reserves all of them, one call after the other; every request must get its unit.
func (r *reserver) take(ctx context.Context, c lua.Cell, batches [][]lua.ReserveRequest) error {
	for _, batch := range batches {
		reply, err := r.s.ledger.Reserve(ctx, c, commodity, 9900, batch)
		if err != nil {
			return err
		}
		for _, a := range reply.Answers {
			if a.Code != lua.Reserved {
				return fmt.Errorf("reserve answers %d with %d units left", a.Code, reply.Remaining)
			}
		}
	}
	return nil
}

// speed is reserve calls of 64 and of 1 from one client, in turn.
func (r *reserver) speed(ctx context.Context) error {
	c, err := r.open(ctx, largeStock)
	if err != nil {
		return err
	}
	many, one := []float64{}, []float64{}
	for round := range r.b.opt.Rounds + 1 {
		for _, size := range []int{reserveBatch, 1} {
			n := map[int]int{reserveBatch: 64_000, 1: 4_000}[size]
			batches := r.batches(c, n, size)
			began := time.Now()
			if err := r.take(ctx, c, batches); err != nil {
				return err
			}
			rate := float64(n) / time.Since(began).Seconds()
			switch {
			case round == 0: // warm
			case size == 1:
				one = append(one, rate)
			default:
				many = append(many, rate)
			}
		}
	}
	r.b.report.set("reserve_64_per_s", median(many))
	r.b.report.set("reserve_1_per_s", median(one))
	r.b.say("flush %s: %.0f reservations/s by 64, %.0f by one", r.b.flushNow(ctx), median(many), median(one))
	return r.whole(ctx, c)
}

// whole checks the books of an activity that lives in Redis only: what is gone from the stock stands in the records.
func (r *reserver) whole(ctx context.Context, c lua.Cell) error {
	state, err := r.s.ledger.Inspect(ctx, c)
	if err != nil {
		return err
	}
	out := Books{Balanced: true, Total: state.Catalog.Items[0].Total, Remaining: state.Remaining[commodity], Occupied: state.Reserved, Accepted: state.Reserved}
	if out.Remaining < 0 || out.Remaining+out.Occupied != out.Total {
		out.fault("activity %s: remaining %d + reserved %d is not %d", c.Activity, out.Remaining, out.Occupied, out.Total)
	}
	r.b.report.Books.add(out)
	return nil
}
