package bench

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"floodgate/bench/load"
	"floodgate/sale"
)

const (
	repeatEvery   = 20               // 5 % of the buyers click twice
	outcomeWithin = 30 * time.Second // far beyond any healthy push; after it the poll decides
)

// canonical is the workload that matters: a crowd far larger than the stock, each buyer asking for a request token and ordering with
// it, some of them twice; winners hear their outcome over a socket.
func (b *bench) canonical(ctx context.Context) error {
	s, err := b.newShop(ctx)
	if err != nil {
		return err
	}
	defer b.closing(ctx, s)()
	if err := b.openCanonical(ctx, s); err != nil {
		return err
	}
	activity, err := s.open(ctx, int64(b.opt.Units), "edge")
	if err != nil {
		return err
	}
	users, err := s.buyers(ctx, activity, b.opt.Users, false)
	if err != nil {
		return err
	}
	run := &click{activity: activity, users: users, sockets: s.sockets("notifier")}
	defer run.sockets.close()
	// Who comes first wins: those have their sockets open, as a page has. The few winners behind them open theirs when they win.
	early := min(len(users), b.opt.Units+2*b.opt.Conns)
	b.say("%d buyers are signed; opening %d sockets", len(users), early)
	ready := make([]*buyer, early)
	for i := range ready {
		ready[i] = &users[i]
	}
	if err := run.sockets.openAll(ctx, ready); err != nil {
		return err
	}
	b.say("selling %d units to %d users", b.opt.Units, b.opt.Users)
	crowd := load.Crowd{Addr: s.addr["edge"], Connections: b.opt.Conns, Count: len(users), Rate: b.opt.Rate}
	before := b.meters.read()
	run.began = time.Now()
	tally := crowd.Run(ctx, run.turn)
	used := b.meters.since(before)
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.judgeCanonical(ctx, s, run, &tally, used)
}

// openCanonical starts the processes: everything in one, or one of each role.
func (b *bench) openCanonical(ctx context.Context, s *shop) error {
	if b.opt.Embedded {
		return s.embedded(ctx)
	}
	if err := s.chain(ctx); err != nil {
		return err
	}
	_, err := s.role(ctx, "edge", "edge", "edge.workers="+s.addr["worker"])
	return err
}

// chain starts worker, notifier and console.
func (s *shop) chain(ctx context.Context) error {
	for _, role := range []string{"worker", "notifier", "console"} {
		if _, err := s.role(ctx, role, role); err != nil {
			return err
		}
	}
	return nil
}

// closing closes a shop; a failure is a note, since the figures stand.
func (b *bench) closing(ctx context.Context, s *shop) func() {
	return func() {
		if err := s.close(ctx); err != nil {
			b.report.note("cleaning up: %v", err)
		}
	}
}

// click is one canonical run.
type click struct {
	activity sale.ID
	users    []buyer
	sockets  *sockets
	began    time.Time
	lastUnit atomic.Int64 // nanoseconds after began
	late     sync.Map     // tokens of winners whose socket was opened after they had won
	failed   atomic.Pointer[string]
}

// turn is one buyer: token, order, and for some the same order again.
func (k *click) turn(c *load.Conn, n int, due time.Time) {
	u := &k.users[n]
	status, body, err := c.Do(tokenRequest(k.activity, u.jwt))
	if err != nil {
		c.Fail()
		return
	}
	token, ok := tokenIn(body)
	if status != 200 || !ok {
		c.Note(other, time.Since(due))
		return
	}
	c.Note(issued, time.Since(due))
	u.token = token
	request := orderRequest(k.activity, u.jwt, token)
	k.told(order(c, request, time.Now()), u)
	if n%repeatEvery == repeatEvery-1 {
		k.told(order(c, request, time.Now()), u)
	}
}

// told notes a winner. A socket that is opened only now is opened here: the winner's connection waits, as its page would.
func (k *click) told(kind int, u *buyer) {
	if kind != accepted {
		return
	}
	at := int64(time.Since(k.began))
	for last := k.lastUnit.Load(); at > last && !k.lastUnit.CompareAndSwap(last, at); last = k.lastUnit.Load() {
	}
	k.sockets.accepted(u)
	if k.sockets.has(u.user) {
		return
	}
	k.late.Store(u.token, true)
	if err := k.sockets.watch(context.Background(), u); err != nil {
		text := err.Error()
		k.failed.Store(&text)
	}
}

// tokenIn reads {"requestToken":"…",…}.
func tokenIn(body []byte) (sale.Token, bool) {
	const name = `"requestToken":"`
	at := bytes.Index(body, []byte(name))
	if at < 0 || len(body) < at+len(name)+sale.TokenLen {
		return "", false
	}
	return sale.Token(body[at+len(name) : at+len(name)+sale.TokenLen]), true
}

func (b *bench) judgeCanonical(ctx context.Context, s *shop, run *click, t *load.Tally, used map[string]float64) error {
	byToken := map[sale.Token]*buyer{}
	winners := int64(0)
	for i := range run.users {
		byToken[run.users[i].token] = &run.users[i]
	}
	run.sockets.mu.Lock()
	winners = int64(len(run.sockets.told))
	run.sockets.mu.Unlock()
	none, polled := run.sockets.settle(ctx, byToken, s.addr["edge"], outcomeWithin)
	books, err := s.books(ctx, run.activity, winners, int64(t.Fails)+t.Count(busy))
	if err != nil {
		return err
	}
	books.WithoutOutcome = none
	if none > 0 {
		books.fault("%d buyers were told accepted and have no outcome", none)
	}
	if t.Count(other) > 0 || t.Fails > 0 {
		b.report.note("%d unexpected answers, %d requests without an answer", t.Count(other), t.Fails)
	}
	if polled > 0 {
		b.report.note("%d outcomes came by poll, not by push", polled)
	}
	if f := run.failed.Load(); f != nil {
		b.report.note("a winner's socket: %s", *f)
	}
	b.report.Books = books
	b.canonicalFigures(run, t, winners)
	b.cpuFigures(used, float64(t.Turns), "cpu_us_per_buyer")
	return nil
}

func (b *bench) canonicalFigures(run *click, t *load.Tally, winners int64) {
	r, last := b.report, time.Duration(run.lastUnit.Load())
	r.set("users", float64(len(run.users)))
	r.set("seconds", t.Took.Seconds())
	r.set("buyers_per_s", float64(t.Turns)/t.Took.Seconds())
	r.set("requests_per_s", float64(t.Count(issued)+t.Count(soldOut)+t.Count(duplicate)+t.Count(accepted)+t.Count(busy))/t.Took.Seconds())
	r.set("refusals_per_s", t.Rate(soldOut)+t.Rate(duplicate))
	r.set("accepted", float64(winners))
	r.set("busy", float64(t.Count(busy)))
	r.set("time_to_last_unit_ms", float64(last.Microseconds())/1000)
	if last > 0 {
		r.set("accepted_per_s", float64(winners)/last.Seconds())
	}
	for kind, name := range map[int]string{accepted: "accepted", soldOut: "refused", issued: "token"} {
		b.percentiles(name, func(p float64) float64 { return t.Millis(kind, p) })
	}
	open := run.sockets.waits(func(token sale.Token) bool { _, late := run.late.Load(token); return !late })
	b.percentiles("outcome_pushed", func(p float64) float64 { return float64(open.ValueAtPercentile(p)) / 1000 })
	r.set("outcomes_by_open_socket", float64(open.TotalCount()))
}

// percentiles sets the three that we report, in milliseconds.
func (b *bench) percentiles(name string, at func(p float64) float64) {
	for p, short := range map[float64]string{50: "p50", 99: "p99", 99.9: "p99_9"} {
		b.report.set(fmt.Sprintf("%s_%s_ms", name, short), at(p))
	}
}

// leastCPU is what a process must use to be told of: the system counts in hundredths of a second, so less is nothing.
const leastCPU = 0.1

// cpuFigures sets the CPU of each process for one unit of work, in microseconds.
func (b *bench) cpuFigures(used map[string]float64, n float64, name string) {
	if n == 0 {
		return
	}
	for process, seconds := range used {
		if us := seconds * 1e6 / n; us >= leastCPU {
			b.report.set(name+"."+process, us)
		}
	}
}
