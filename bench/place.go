package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"floodgate/bench/load"
	"floodgate/sale"
)

const (
	placeBatch  = 200
	chainFor    = 8 * time.Second
	chainSample = 1000 // sockets of buyers spread evenly over the crowd
)

// place measures the database: a batch in one transaction against one transaction an order, in turn; and then the whole chain at a
// quarter of the peak.
func (b *bench) place(ctx context.Context) error {
	if err := b.placeInTurn(ctx); err != nil {
		return err
	}
	b.report.atLeast("batch_over_single", 20)
	peak, err := b.findPeak(ctx)
	if err != nil {
		return err
	}
	if err := b.chain(ctx, peak/4); err != nil {
		return err
	}
	b.report.atMost("outcome_pushed_p99_ms", 100)
	return nil
}

// placer is one client of sql.Store.Place with an activity of its own.
type placer struct {
	s        *shop
	activity sale.ID
	epoch    int64
	number   sale.ID
}

func (b *bench) placeInTurn(ctx context.Context) error {
	s, err := b.newShop(ctx)
	if err != nil {
		return err
	}
	now := sale.At(time.Now())
	a := sale.Activity{Title: "bench", StartsAt: now, EndsAt: now + 3_600_000, PerUserLimit: 1, PayWindow: 15 * time.Minute,
		Items: []sale.Item{{Commodity: commodity, Title: "unit", Price: 9900, Total: largeStock}}}
	id, err := s.store.CreateActivity(ctx, a)
	if err != nil {
		return err
	}
	row, err := s.store.Activity(ctx, id)
	if err != nil {
		return err
	}
	p := &placer{s: s, activity: id, epoch: row.Epoch, number: 1 << 40}
	if _, err := p.run(ctx, placeBatch, time.Second/2); err != nil { // warm
		return err
	}
	var batch, single []float64
	for round := range b.opt.Rounds {
		many, err := p.run(ctx, placeBatch, b.opt.For)
		if err != nil {
			return err
		}
		one, err := p.run(ctx, 1, b.opt.For)
		if err != nil {
			return err
		}
		batch, single = append(batch, many), append(single, one)
		b.say("round %d: %.0f orders/s by %d, %.0f by one", round+1, many, placeBatch, one)
	}
	b.report.set("place_batch_per_s", median(batch))
	b.report.set("place_single_per_s", median(single))
	b.report.set("batch_over_single", median(batch)/median(single))
	return nil
}

// run places orders for a while, size a transaction, and gives orders a second.
func (p *placer) run(ctx context.Context, size int, length time.Duration) (float64, error) {
	began, placed := time.Now(), 0
	before := p.s.b.meters.read()
	for time.Since(began) < length {
		out, err := p.s.store.Place(ctx, p.activity, commodity, p.epoch, p.orders(size))
		if err != nil {
			return 0, err
		}
		if len(out.Inserted) != size {
			return 0, fmt.Errorf("%d of %d orders were inserted", len(out.Inserted), size)
		}
		placed += size
	}
	took := time.Since(began).Seconds()
	name := "place_batch_cpu_us"
	if size == 1 {
		name = "place_single_cpu_us"
	}
	p.s.b.cpuFigures(p.s.b.meters.since(before), float64(placed), name)
	return float64(placed) / took, nil
}

func (p *placer) orders(n int) []sale.Order {
	out, now := make([]sale.Order, n), sale.At(time.Now())
	for i := range out {
		p.number++
		p.s.b.user++
		user := sale.ID(p.s.b.user)
		token := p.s.tokens.Sign(sale.TokenClaims{User: user, Activity: p.activity, Nonce: rand.Uint64(), Expires: now + 600_000})
		out[i] = sale.Order{No: p.number, Token: token, User: user, Activity: p.activity, Commodity: commodity, Title: "unit", Quantity: 1,
			Price: 9900, State: sale.StatePending, Slots: []int{0}, CreatedAt: now, UpdatedAt: now, PayBy: now + 900_000}
	}
	return out
}

// findPeak is the gathered rate as the stack flushes now, without workers.
func (b *bench) findPeak(ctx context.Context) (float64, error) {
	s, err := b.newShop(ctx)
	if err != nil {
		return 0, err
	}
	defer b.closing(ctx, s)()
	activity, err := s.openAlone(ctx)
	if err != nil {
		return 0, err
	}
	a := &acceptRun{s: s, activity: activity, mode: b.flushNow(ctx)}
	if err := a.warm(ctx, "edge"); err != nil {
		return 0, err
	}
	t, _, err := a.phase(ctx, "edge", mostBuyers*int(b.opt.For.Seconds()), 0, b.opt.For)
	if err != nil {
		return 0, err
	}
	b.report.set("gathered_per_s", t.Rate(accepted))
	return t.Rate(accepted), a.audit(ctx)
}

// chain sends purchases at a steady rate through edge, queue, worker and notifier, and measures from the 202 to the pushed outcome.
func (b *bench) chain(ctx context.Context, rate float64) error {
	s, err := b.newShop(ctx)
	if err != nil {
		return err
	}
	defer b.closing(ctx, s)()
	if err := b.openCanonical(ctx, s); err != nil {
		return err
	}
	activity, err := s.open(ctx, largeStock, "edge")
	if err != nil {
		return err
	}
	a := &acceptRun{s: s, activity: activity, mode: b.flushNow(ctx)}
	if err := a.warm(ctx, "edge"); err != nil {
		return err
	}
	if err := s.placed(ctx, activity, a.accepted, drainFor); err != nil {
		return err
	}
	n := int(rate * chainFor.Seconds())
	users, err := s.buyers(ctx, activity, n, true)
	if err != nil {
		return err
	}
	sockets := s.sockets("notifier")
	defer sockets.close()
	step := max(1, n/chainSample)
	var sample []*buyer
	byToken := map[sale.Token]*buyer{}
	for i := 0; i < n; i += step {
		sample = append(sample, &users[i])
		byToken[users[i].token] = &users[i]
	}
	if err := sockets.openAll(ctx, sample); err != nil {
		return err
	}
	b.say("the whole chain at %.0f purchases/s, %d sockets", rate, len(sample))
	before := b.meters.read()
	t := load.Crowd{Addr: s.addr["edge"], Connections: b.opt.Conns, Count: n, Rate: rate}.Run(ctx, func(c *load.Conn, i int, due time.Time) {
		if order(c, users[i].order, due) == accepted && i%step == 0 {
			sockets.accepted(&users[i])
		}
	})
	a.accepted, a.unsure = a.accepted+t.Count(accepted), a.unsure+int64(t.Fails)+t.Count(busy)
	none, polled := sockets.settle(ctx, byToken, s.addr["edge"], outcomeWithin)
	if err := s.placed(ctx, activity, a.accepted, drainFor); err != nil {
		return err
	}
	b.cpuFigures(b.meters.since(before), float64(t.Count(accepted)), "chain_cpu_us_per_accepted")
	return b.judgeChain(ctx, a, &t, sockets, none, polled)
}

func (b *bench) judgeChain(ctx context.Context, a *acceptRun, t *load.Tally, sockets *sockets, none, polled int64) error {
	h := sockets.waits(func(sale.Token) bool { return true })
	b.report.set("chain_per_s", t.Rate(accepted))
	b.percentiles("outcome_pushed", func(p float64) float64 { return float64(h.ValueAtPercentile(p)) / 1000 })
	b.percentiles("chain_accepted", func(p float64) float64 { return t.Millis(accepted, p) })
	b.say("accepted p99 %.1f ms, pushed p99 %.1f ms", t.Millis(accepted, 99), float64(h.ValueAtPercentile(99))/1000)
	if polled > 0 {
		b.report.note("%d outcomes came by poll, not by push", polled)
	}
	if none > 0 {
		b.report.Books.WithoutOutcome += none
		b.report.Books.fault("%d buyers were told accepted and have no outcome", none)
	}
	return a.audit(ctx)
}
