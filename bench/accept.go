package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"floodgate/bench/load"
	"floodgate/sale"
)

const (
	largeStock = 100_000_000      // units: no phase comes near it
	warmUp     = 2000             // purchases before the clock starts: connections, scripts, caches
	mostBuyers = 50_000           // signed for each second of a gathered phase: more than two cores have ever accepted
	mostSingle = 20_000           // the same for one call each
	coldFor    = 15 * time.Second // at most; seen: rates rise for so long after a broker's start
	drainFor   = 2 * time.Minute
)

// accept measures the way to a 202 under a large stock: gathered against one call each, in turn, under both ways of flushing.
func (b *bench) accept(ctx context.Context) error {
	modes, restore := b.flushModes(ctx)
	defer restore()
	for _, mode := range modes {
		if err := b.flushTo(ctx, mode); err != nil {
			return err
		}
		if err := b.acceptAlone(ctx, mode); err != nil {
			return err
		}
		if err := b.acceptWithWorker(ctx, mode); err != nil {
			return err
		}
	}
	for mode, want := range map[string]float64{"second": 4, "always": 3} {
		if slices.Contains(modes, mode) {
			b.report.atLeast("gathered_over_single."+mode, want)
		}
	}
	if slices.Contains(modes, "always") {
		b.report.atMost("cpu_us_per_accepted.always", 80)
	}
	for _, mode := range modes {
		b.report.atMost("p99_ms_at_half_peak."+mode, 50)
	}
	slices.SortFunc(b.report.Goals, func(x, y Goal) int { return cmp.Compare(x.Name, y.Name) })
	return nil
}

// acceptAlone measures edge, Redis and broker alone: no worker runs.
func (b *bench) acceptAlone(ctx context.Context, mode string) error {
	s, err := b.newShop(ctx)
	if err != nil {
		return err
	}
	defer b.closing(ctx, s)()
	activity, err := s.openAlone(ctx)
	if err != nil {
		return err
	}
	a := &acceptRun{s: s, activity: activity, mode: mode}
	for _, edge := range []string{"edge-single", "edge"} {
		if err := a.warm(ctx, edge); err != nil {
			return err
		}
	}
	b.cold = false
	if err := a.inTurn(ctx); err != nil {
		return err
	}
	if err := a.atHalf(ctx); err != nil {
		return err
	}
	return a.audit(ctx)
}

// openAlone starts a gathering and a single edge, opens an activity, and stops the worker that opened it.
func (s *shop) openAlone(ctx context.Context) (sale.ID, error) {
	worker, err := s.role(ctx, "worker", "worker")
	if err != nil {
		return 0, err
	}
	for name, set := range map[string]string{"edge": "edge.single=false", "edge-single": "edge.single=true"} {
		if _, err := s.role(ctx, name, "edge", set); err != nil {
			return 0, err
		}
	}
	if _, err := s.role(ctx, "console", "console"); err != nil {
		return 0, err
	}
	activity, err := s.open(ctx, largeStock, "edge", "edge-single")
	if err != nil {
		return 0, err
	}
	return activity, s.stop(worker)
}

// acceptRun is the phases of one activity.
type acceptRun struct {
	s                *shop
	activity         sale.ID
	mode             string
	accepted, unsure int64
	peak             float64 // gathered, accepted a second
}

// phase sends new buyers to an edge for a while, rate 0 in a closed loop, and gives what they noted and what it cost.
func (a *acceptRun) phase(ctx context.Context, edge string, n int, rate float64, length time.Duration) (load.Tally, map[string]float64, error) {
	users, err := a.s.buyers(ctx, a.activity, n, true)
	if err != nil {
		return load.Tally{}, nil, err
	}
	before := a.s.b.meters.read()
	t := load.Crowd{Addr: a.s.addr[edge], Connections: a.s.b.opt.Conns, Count: n, For: length, Rate: rate}.Run(ctx,
		func(c *load.Conn, i int, due time.Time) { order(c, users[i].order, due) })
	used := a.s.b.meters.since(before)
	a.accepted += t.Count(accepted)
	a.unsure += int64(t.Fails) + t.Count(busy)
	if t.Count(accepted) == 0 {
		return t, used, fmt.Errorf("%s accepted nobody: %d busy, %d other, %d without an answer", edge, t.Count(busy), t.Count(other), t.Fails)
	}
	if bad := int64(t.Fails) + t.Count(busy) + t.Count(other); bad > 0 {
		a.s.b.report.note("%s, flush %s: %d of %d were not accepted", edge, a.mode, bad, t.Turns)
	}
	return t, used, ctx.Err()
}

// warm sends the first purchases unmeasured. A broker that has just been restarted gets seconds of them: its code is
// not compiled yet, and costs twice as much until it is.
func (a *acceptRun) warm(ctx context.Context, edge string) error {
	n := warmUp
	if a.s.b.cold {
		n *= 150
	}
	_, _, err := a.phase(ctx, edge, n, 0, coldFor)
	return err
}

// inTurn measures gathered and single one after the other, several times, so that what the machine does beside hits both.
func (a *acceptRun) inTurn(ctx context.Context) error {
	b := a.s.b
	rates, cpu := map[string][]float64{}, map[string]map[string][]float64{"edge": {}, "edge-single": {}}
	for round := range b.opt.Rounds {
		for _, edge := range []string{"edge", "edge-single"} {
			n := map[string]int{"edge": mostBuyers, "edge-single": mostSingle}[edge] * int(b.opt.For.Seconds())
			t, used, err := a.phase(ctx, edge, n, 0, b.opt.For)
			if err != nil {
				return err
			}
			rates[edge] = append(rates[edge], t.Rate(accepted))
			for process, seconds := range costOf(used, edge) {
				cpu[edge][process] = append(cpu[edge][process], seconds*1e6/float64(t.Count(accepted)))
			}
			b.say("flush %s, round %d, %s: %.0f accepted/s, p50 %.1f ms, p99 %.1f ms", a.mode, round+1, edge, t.Rate(accepted), t.Millis(accepted, 50), t.Millis(accepted, 99))
		}
	}
	a.peak = median(rates["edge"])
	single := median(rates["edge-single"])
	b.report.set("gathered_per_s."+a.mode, a.peak)
	b.report.set("single_per_s."+a.mode, single)
	b.report.set("gathered_over_single."+a.mode, a.peak/single)
	a.costs("cpu_us_per_accepted."+a.mode, cpu["edge"])
	a.costs("cpu_us_per_accepted_single."+a.mode, cpu["edge-single"])
	return nil
}

// costOf leaves out the edge that idles beside, under one name for both.
func costOf(used map[string]float64, edge string) map[string]float64 {
	out := maps.Clone(used)
	delete(out, "edge")
	delete(out, "edge-single")
	delete(out, "console")
	delete(out, "mariadb") // neither has part in this
	out["edge"] = used[edge]
	return out
}

// costs sets the CPU of each process, and the sum over edge, Redis and broker, which is what the goal is about.
func (a *acceptRun) costs(name string, cpu map[string][]float64) {
	sum := 0.0
	for process, values := range cpu {
		m := median(values)
		if m >= leastCPU {
			a.s.b.report.set(name+"."+process, m)
		}
		if process == "edge" || process == "redis" || process == "broker" {
			sum += m
		}
	}
	if len(cpu["redis"]) > 0 && len(cpu["broker"]) > 0 {
		a.s.b.report.set(name, sum)
	}
}

// atHalf measures latency at half of the gathered peak, in an open loop.
func (a *acceptRun) atHalf(ctx context.Context) error {
	rate := a.peak / 2
	length := a.s.b.opt.For
	t, _, err := a.phase(ctx, "edge", int(rate*length.Seconds()), rate, length)
	if err != nil {
		return err
	}
	a.s.b.report.set("half_peak_per_s."+a.mode, t.Rate(accepted))
	for p, name := range map[float64]string{50: "p50", 99: "p99", 99.9: "p99_9"} {
		a.s.b.report.set(name+"_ms_at_half_peak."+a.mode, t.Millis(accepted, p))
	}
	a.s.b.say("flush %s, half of the peak: p50 %.1f ms, p99 %.1f ms", a.mode, t.Millis(accepted, 50), t.Millis(accepted, 99))
	return nil
}

func (a *acceptRun) audit(ctx context.Context) error {
	a.s.b.say("flush %s: auditing %d purchases", a.mode, a.accepted)
	books, err := a.s.books(ctx, a.activity, a.accepted, a.unsure)
	a.s.b.report.Books.add(books)
	return err
}

// acceptWithWorker measures the same with a worker, a notifier and MariaDB beside it on the same cores, and what a purchase costs in
// all until its order stands in the database and is announced.
func (b *bench) acceptWithWorker(ctx context.Context, mode string) error {
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
	a := &acceptRun{s: s, activity: activity, mode: mode}
	if err := a.warm(ctx, "edge"); err != nil {
		return err
	}
	if err := s.placed(ctx, activity, a.accepted, drainFor); err != nil {
		return err
	}
	t, used, err := a.phase(ctx, "edge", mostBuyers*int(b.opt.For.Seconds()), 0, b.opt.For)
	if err != nil {
		return err
	}
	before, ended := b.meters.read(), time.Now()
	if err := s.placed(ctx, activity, a.accepted, drainFor); err != nil {
		return err
	}
	took := t.Took + time.Since(ended)
	for process, seconds := range b.meters.since(before) { // what was still to be placed
		used[process] += seconds
	}
	b.report.set("with_worker_accepted_per_s."+mode, t.Rate(accepted))
	b.report.set("with_worker_placed_per_s."+mode, float64(t.Count(accepted))/took.Seconds())
	b.cpuFigures(used, float64(t.Count(accepted)), "with_worker_cpu_us_per_accepted."+mode)
	b.say("flush %s, a worker beside: %.0f accepted/s, %.0f placed/s until the last", mode, t.Rate(accepted), float64(t.Count(accepted))/took.Seconds())
	return a.audit(ctx)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
