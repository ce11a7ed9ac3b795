package lua

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/sale"
)

var (
	seedFlag  = flag.Int64("seed", 0, "seed of the random test; 0 takes a new one")
	stepsFlag = flag.Int("steps", 3000, "steps of the random test on miniredis; half as many on real Redis")
)

// Random operations, replays, restarts, losses and recoveries against the auditor, compared after each step in every
// answer and the whole state. A failure prints the seed; -seed repeats it.
func TestRandomOperationsAgainstTheAuditor(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		seed, steps := *seedFlag, *stepsFlag
		if seed == 0 {
			seed = time.Now().UnixNano()
		}
		if w.embedded == "0" {
			steps /= 2
		}
		d := &driver{world: w, t: t, r: rand.New(rand.NewPCG(uint64(seed), 0)), rows: map[sale.Token]sale.Reservation{}}
		d.start()
		for d.n = range steps {
			d.step()
			if err := d.compare(); err != nil {
				t.Fatalf("-seed=%d, step %d (%s): %v", seed, d.n, d.did, err)
			}
		}
		t.Logf("seed %d, %d steps, %d recoveries, %v", seed, steps, d.a.epoch, d.answers)
	})
}

// driver makes the random calls to both ledgers.
type driver struct {
	*world
	t       *testing.T
	r       *rand.Rand
	a       *auditor
	n       int
	did     string
	rows    map[sale.Token]sale.Reservation // the database: committed orders, for recoveries after a loss
	tried   int64                           // newest epoch that a recovery was begun under
	answers map[string]int
}

func (d *driver) start() {
	d.sale.PerUserLimit = 2
	stock := map[sale.ID]int64{1: 5, item: 12}
	must[Code](d.t)(d.Open(d.ctx, d.sale, 0, stock))
	d.answers = map[string]int{}
	d.a = &auditor{opened: true, proven: true, status: sale.Live, limit: 2, building: -1, stock: maps.Clone(stock), loaded: maps.Clone(stock),
		res: map[sale.Token]sale.Reservation{}, pending: map[string]bool{}, lots: map[string]bool{}}
}

// same fails where the two ledgers answer differently.
func (d *driver) same(what string, got, want any) {
	d.did += fmt.Sprintf(" %s=%v", what, got)
	d.answers[what]++
	if !reflect.DeepEqual(got, want) {
		d.t.Errorf("%s: the scripts say %v, the auditor %v", d.did, got, want)
	}
}

// step makes one operation, and in one of five cases the very same again: a reply was lost, or a message came twice.
func (d *driver) step() {
	d.did = ""
	ops := []func() func(){d.reserve, d.reserve, d.reserve, d.reserve, d.claim, d.claim, d.commit, d.commit, d.release, d.release,
		d.due, d.due, d.enqueued, d.operator, d.restock}
	op := d.recover
	if d.r.IntN(40) == 0 {
		op = d.fail
	} else if d.a.proven && !d.a.recovering || d.r.IntN(3) > 0 {
		op = ops[d.r.IntN(len(ops))]
	}
	again := op()
	for again(); d.r.IntN(5) == 0; {
		again()
	}
}

func (d *driver) item() sale.ID     { return []sale.ID{1, item, item, item}[d.r.IntN(4)] }
func (d *driver) user() sale.ID     { return 1<<60 + sale.ID(d.r.IntN(8)) }
func (d *driver) quantity() int     { return 1 + d.r.IntN(8)/6 }
func (d *driver) some() int         { return 1 + d.r.IntN(5) }
func (d *driver) token() sale.Token { return sale.Token("t" + strconv.Itoa(d.n/60+d.r.IntN(40))) }

func (d *driver) reserve() func() {
	it, batch := d.item(), make([]ReserveRequest, d.some())
	for i := range batch {
		t := d.token()
		batch[i] = ReserveRequest{t, 1<<60 + sale.ID(len(t)+int(t[len(t)-1]))%8, d.quantity()}
		if d.r.IntN(10) == 0 {
			batch[i].User = d.user()
		}
	}
	return func() {
		r := must[ReserveReply](d.t)(d.Reserve(d.ctx, d.cell, it, price, batch))
		d.same("reserve", r.Answers, d.a.reserve(it, price, batch))
		if r.Pending != "" && count(codesOf(r), Reserved) > 0 && !d.a.pending[r.Pending] {
			d.t.Errorf("%s: %q is not pending", d.did, r.Pending)
		}
	}
}

func (d *driver) claim() func() {
	batch := make([]ClaimRequest, d.some())
	for i := range batch {
		batch[i] = ClaimRequest{d.token(), d.user(), d.item(), d.quantity(), price, 1}
	}
	return func() {
		answers, epoch, err := d.Claim(d.ctx, d.cell, batch)
		must[int64](d.t)(epoch, err)
		want := d.a.claim(batch)
		var codes []Code
		for i, x := range answers {
			codes = append(codes, x.Code)
			if r := d.a.res[batch[i].Token]; x.Reservation.Token != "" && canonical(x.Reservation) != canonical(r) {
				d.t.Errorf("claim of %s says %s, the auditor %s", r.Token, canonical(x.Reservation), canonical(r))
			}
		}
		d.same("claim", codes, want)
		if epoch != d.a.epoch {
			d.t.Errorf("claim says epoch %d, the auditor %d", epoch, d.a.epoch)
		}
	}
}

func (d *driver) settlements(outcomes ...sale.Code) []Settlement {
	batch := make([]Settlement, d.some())
	for i := range batch {
		batch[i] = Settlement{Outcome: sale.Outcome{User: 1, Token: d.token(), Outcome: outcomes[d.r.IntN(len(outcomes))], OrderNo: 1<<62 + 1,
			PayBy: sale.Millis(d.r.IntN(9)), Reason: []string{"", sale.ReasonSoldOut}[d.r.IntN(2)], At: 5}}
	}
	return batch
}

func (d *driver) commit() func() {
	batch := d.settlements(sale.PendingPayment, sale.Paid)
	return func() { d.same("commit", must[[]Code](d.t)(d.Commit(d.ctx, d.cell, batch)), d.a.commit(batch)) }
}

func (d *driver) release() func() {
	batch := d.settlements(sale.Failed, sale.Closed, sale.Cancelled)
	return func() { d.same("release", must[[]Code](d.t)(d.Release(d.ctx, d.cell, batch)), d.a.release(batch)) }
}

func (d *driver) due() func() {
	limit := d.some()
	return func() {
		key := keysOf(d.cell)[keyPending]
		for member := range d.a.pending { // time passes: all of them are due
			must[int64](d.t)(d.rdb.ZAddXX(d.ctx, key, redis.Z{Score: 1, Member: member}).Result())
		}
		due, held, err := d.Due(d.ctx, d.cell, limit)
		if c := d.a.blocked(); c != 0 {
			d.same("due", err, asError(c))
			return
		}
		must[int](d.t)(len(held), err)
		var got []sale.Token
		for _, r := range due {
			got = append(got, r.Token)
		}
		d.same("due", got, d.a.due(limit))
	}
}

func (d *driver) enqueued() func() {
	members := slices.Sorted(maps.Keys(d.a.pending))
	members = append(members[:d.r.IntN(len(members)+1)], "t0,gone")
	return func() { must[bool](d.t)(true, d.Enqueued(d.ctx, d.cell, members...)) }
}

func (d *driver) operator() func() {
	what := d.r.IntN(3)
	s := d.sale
	s.PerUserLimit, s.Status = 1+d.r.IntN(3), []sale.Status{sale.Live, sale.Live, sale.Live, sale.Ended}[d.r.IntN(4)]
	return func() {
		var err error
		want := map[bool]error{true: nil, false: ErrUnopened}[d.a.opened]
		switch what {
		case 0:
			err = d.Pause(d.ctx, d.cell)
			if d.a.opened && d.a.status == sale.Live {
				d.a.status = sale.Paused
			}
		case 1:
			err = d.Resume(d.ctx, d.cell)
			if d.a.opened && d.a.status == sale.Paused {
				d.a.status = sale.Live
			}
		case 2:
			if err = d.Describe(d.ctx, s); d.a.opened {
				d.a.status, d.a.limit = s.Status, s.PerUserLimit
			}
		}
		d.same("operator", err, want)
	}
}

func (d *driver) restock() func() {
	it, n, epoch, lot := d.item(), int64(d.some()), d.a.epoch-int64(d.r.IntN(4)/3), "lot-"+strconv.Itoa(d.n-d.r.IntN(2))
	return func() {
		if epoch < 0 {
			return
		}
		d.same("restock", must[Code](d.t)(d.Restock(d.ctx, d.cell, it, n, epoch, lot)), d.a.restock(it, n, epoch, lot))
	}
}

// canonical is a reservation without the times that only Redis knows.
func canonical(r sale.Reservation) string {
	r.ReservedAt = 0
	return pack(&r)
}

// compare reads the whole state in one round trip and compares it with the auditor's.
func (d *driver) compare() error {
	if d.t.Failed() {
		return fmt.Errorf("the answers differ")
	}
	k := keysOf(d.cell)
	p := d.rdb.Pipeline()
	stock, buyers, res := p.HGetAll(d.ctx, k[keyStock]), p.HGetAll(d.ctx, k[keyBuyers]), p.HGetAll(d.ctx, k[keyRes])
	pending, meta := p.ZRange(d.ctx, k[keyPending], 0, -1), p.HMGet(d.ctx, k[0], "epoch", "version")
	must[[]redis.Cmder](d.t)(p.Exec(context.Background()))
	got := []any{stock.Val(), buyers.Val(), map[string]string{}, slices.Sorted(slices.Values(pending.Val())), meta.Val()}
	for token, record := range res.Val() {
		r := must[sale.Reservation](d.t)(unpack(sale.Token(token), record))
		got[2].(map[string]string)[token] = canonical(r)
	}
	for i, want := range d.a.state() {
		if !reflect.DeepEqual(fmt.Sprint(got[i]), fmt.Sprint(want)) {
			return fmt.Errorf("%s\nredis   %v\nauditor %v", []string{"stock", "buyers", "res", "pending", "epoch and version"}[i], got[i], want)
		}
	}
	return d.a.balance()
}

// state is what Redis should hold: stock, buyers, res, pending, epoch and version.
func (a *auditor) state() []any {
	stock, buyers, res := map[string]string{}, map[string]string{}, map[string]string{}
	for it, n := range a.stock {
		stock[it.String()] = strconv.FormatInt(n, 10)
	}
	for t, r := range a.res {
		res[string(t)] = canonical(r)
		if !a.live(t) {
			continue
		}
		slots := a.slots(r.User, r.Commodity)
		list := make([]string, slices.Max(slices.Collect(maps.Keys(slots)))+1)
		for s, holder := range slots {
			list[s] = string(holder)
		}
		buyers[r.User.String()+":"+r.Commodity.String()] = strings.Join(list, ",")
	}
	meta := []any{nil, nil}
	if a.opened {
		meta = []any{strconv.FormatInt(a.epoch, 10), strconv.FormatInt(a.version, 10)}
	}
	return []any{stock, buyers, res, slices.Sorted(maps.Keys(a.pending)), meta}
}
