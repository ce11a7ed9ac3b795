package bench

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"floodgate/bench/load"
)

const (
	idleConnections = 10_000
	crowdOfMemory   = 128 // connections of the crowd beside the idle ones
	lookEvery       = 100 * time.Millisecond
)

// memory measures what an edge holds at 10,000 connections that have each asked once and stay, with a sold-out crowd beside them: as
// it is by default, and where connections keep their buffers.
func (b *bench) memory(ctx context.Context) error {
	if err := raiseFiles(); err != nil {
		return err
	}
	for _, way := range []struct{ name, set string }{{"", "edge.save_memory=true"}, {"_keep_buffers", "edge.save_memory=false"}} {
		if err := b.memoryOf(ctx, way.name, way.set); err != nil {
			return err
		}
	}
	b.report.atMost("edge_peak_mib", 200)
	return nil
}

// raiseFiles makes room for 10,000 connections here and in the edge, which inherits it.
func raiseFiles() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	if l.Max < idleConnections+1000 {
		return fmt.Errorf("the limit of open files is %d: raise it above %d (ulimit -Hn)", l.Max, idleConnections+1000)
	}
	l.Cur = l.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}

func (b *bench) memoryOf(ctx context.Context, name, set string) error {
	s, err := b.newShop(ctx)
	if err != nil {
		return err
	}
	defer b.closing(ctx, s)()
	if err := s.chain(ctx); err != nil {
		return err
	}
	edge, err := s.role(ctx, "edge", "edge", "edge.workers="+s.addr["worker"], set)
	if err != nil {
		return err
	}
	activity, err := s.open(ctx, 1, "edge")
	if err != nil {
		return err
	}
	a := &acceptRun{s: s, activity: activity, mode: b.flushNow(ctx)}
	if _, _, err := a.phase(ctx, "edge", 50, 0, 0); err != nil && ctx.Err() != nil { // sells the one unit
		return err
	}
	fresh, _ := memoryOf(edge.pid())
	users, err := s.buyers(ctx, activity, idleConnections, true)
	if err != nil {
		return err
	}
	idle, err := load.Dial(ctx, s.addr["edge"], idleConnections, 64)
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	for i, c := range idle {
		if kind := order(c, users[i].order, time.Now()); kind != soldOut {
			return fmt.Errorf("an idle connection's one order was answered as kind %d, want sold out", kind)
		}
	}
	quiet, _ := memoryOf(edge.pid())
	t, highest := b.crowdBeside(ctx, s, edge, users)
	_, peak := memoryOf(edge.pid())
	b.report.set("edge_fresh_mib"+name, fresh)
	b.report.set("edge_idle_mib"+name, quiet)
	b.report.set("edge_crowd_mib"+name, highest)
	b.report.set("edge_peak_mib"+name, peak)
	b.report.set("refusals_per_s"+name, t.Rate(soldOut))
	b.report.set("refused_p99_ms"+name, t.Millis(soldOut, 99))
	b.say("%s: %.0f MiB fresh, %.0f idle, %.0f at the most, %.0f refusals/s", set, fresh, quiet, peak, t.Rate(soldOut))
	return a.audit(ctx)
}

// crowdBeside sends a crowd that is refused, and gives the most memory that the edge held meanwhile.
func (b *bench) crowdBeside(ctx context.Context, s *shop, edge *process, users []buyer) (load.Tally, float64) {
	done, highest := make(chan struct{}), make(chan float64)
	go func() {
		most, tick := 0.0, time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				now, _ := memoryOf(edge.pid())
				most = max(most, now)
			case <-done:
				highest <- most
				return
			}
		}
	}()
	t := load.Crowd{Addr: s.addr["edge"], Connections: crowdOfMemory, Count: 100_000_000, For: b.opt.For}.Run(ctx, func(c *load.Conn, n int, due time.Time) {
		order(c, users[n%len(users)].order, due)
	})
	close(done)
	return t, <-highest
}
