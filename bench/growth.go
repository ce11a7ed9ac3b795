package bench

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"floodgate/bench/load"
	"floodgate/lua"
)

// growthUnits is how many purchases are measured at each size of stock: 1.6 s of CPU, which the system counts in hundredths.
const growthUnits = 20_000

// sizes of stock between which the cost of a purchase must not differ.
var sizes = []int{1_000, 10_000, 100_000, 1_000_000}

// growth sells stocks of growing size to the end, over HTTP, and measures what the last units of each cost: by then all the others
// lie in the ledger. The sizes are measured in turn, several times, so that what the machine does beside hits all alike.
func (r *reserver) growth(ctx context.Context) error {
	if _, err := r.s.role(ctx, "edge", "edge"); err != nil {
		return err
	}
	whole, ledger := map[int][]float64{}, map[int][]float64{}
	if _, _, err := r.sellOut(ctx, sizes[0]); err != nil { // unmeasured: the edge and the broker warm up
		return err
	}
	for round := range r.b.opt.Rounds {
		for _, units := range sizes {
			cost, ofRedis, err := r.sellOut(ctx, units)
			if err != nil {
				return err
			}
			whole[units], ledger[units] = append(whole[units], cost), append(ledger[units], ofRedis)
			r.b.say("round %d, stock of %d: %.1f us a purchase, of which Redis %.2f", round+1, units, cost, ofRedis)
		}
	}
	least, most := 0.0, 0.0
	for _, units := range sizes {
		cost := median(whole[units])
		r.b.report.set(fmt.Sprintf("growth_cpu_us_at_%d", units), cost)
		r.b.report.set(fmt.Sprintf("growth_cpu_us_at_%d.redis", units), median(ledger[units]))
		if least == 0 || cost < least {
			least = cost
		}
		most = max(most, cost)
	}
	r.b.report.set("growth_most_over_least", most/least)
	return nil
}

// sellOut sells stocks of one size, the last growthUnits of them over HTTP, and gives the CPU of edge, Redis and broker for each of
// those purchases, and Redis's part. Small stocks are sold one after the other in the same stretch.
func (r *reserver) sellOut(ctx context.Context, units int) (cost, ofRedis float64, err error) {
	measured := min(units, growthUnits)
	var cells []lua.Cell
	var users []buyer
	for range growthUnits / measured {
		c, err := r.open(ctx, int64(units))
		if err != nil {
			return 0, 0, err
		}
		for left := units - measured; left > 0; left -= growthUnits { // in parts: the requests of a million would take 200 MB
			if err := r.take(ctx, c, r.batches(c, min(left, growthUnits), lua.MaxReserve)); err != nil {
				return 0, 0, err
			}
		}
		more, err := r.s.buyers(ctx, c.Activity, measured, true)
		if err != nil {
			return 0, 0, err
		}
		cells, users = append(cells, c), append(users, more...)
	}
	if err := r.calm(ctx, cells); err != nil {
		return 0, 0, err
	}
	cost, ofRedis, err = r.overHTTP(ctx, users)
	for _, c := range cells {
		if err == nil {
			err = r.whole(ctx, c)
		}
		if err == nil { // the next size finds as much room as this one did
			err = r.s.ledger.Drop(ctx, c)
		}
	}
	return cost, ofRedis, err
}

// calm waits until the edge sells all of these, and Redis does not rewrite its file: it forks for that and copies every page that it
// then touches, which is not a purchase's cost.
func (r *reserver) calm(ctx context.Context, cells []lua.Cell) error {
	return eventually(ctx, time.Minute, "the edge sells, and Redis has rewritten its file", func() bool {
		for _, c := range cells {
			var a struct{ Status string }
			if r.s.get(ctx, "http://"+r.s.addr["edge"]+"/api/activities/"+c.Activity.String(), "", &a) != http.StatusOK || a.Status != "live" {
				return false
			}
		}
		return infoField(r.rdb.Info(ctx, "persistence").Val(), "aof_rewrite_in_progress") != "1"
	})
}

// overHTTP sends one purchase of each user, in a closed loop.
func (r *reserver) overHTTP(ctx context.Context, users []buyer) (cost, ofRedis float64, err error) {
	before, redisBefore := r.b.meters.read(), r.cpu(ctx)
	t := load.Crowd{Addr: r.s.addr["edge"], Connections: r.b.opt.Conns, Count: len(users)}.Run(ctx,
		func(c *load.Conn, i int, due time.Time) { order(c, users[i].order, due) })
	used, n := r.b.meters.since(before), float64(t.Count(accepted))
	if int(n) != len(users) {
		return 0, 0, fmt.Errorf("%d of %d were accepted, %d busy, %d sold out", t.Count(accepted), len(users), t.Count(busy), t.Count(soldOut))
	}
	ofRedis = (r.cpu(ctx) - redisBefore) * 1e6 / n
	return (used["edge"]+used["broker"])*1e6/n + ofRedis, ofRedis, nil
}

// cpu is Redis's own account of its main thread's CPU, in seconds: in microseconds where the system counts in hundredths.
func (r *reserver) cpu(ctx context.Context) float64 {
	info := r.rdb.Info(ctx, "cpu").Val()
	user, _ := strconv.ParseFloat(infoField(info, "used_cpu_user_main_thread"), 64)
	system, _ := strconv.ParseFloat(infoField(info, "used_cpu_sys_main_thread"), 64)
	return user + system
}
