// Package bench measures Floodgate as its buyers meet it: real processes of the same binary, real HTTP, real stores, and the
// books audited at the end of each run. A run starts its own processes on free loopback ports, in a temporary folder, with keys,
// a database and topics of its own beside those of the running stack, and removes them all.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/mq"
	"floodgate/sql"
)

// ErrNoStack says that a benchmark needs the real stack and none is configured.
var ErrNoStack = errors.New("no stack: run `deploy/stack up` and `source <(deploy/stack env)`")

// ErrUsage is a setting out of its bounds.
var ErrUsage = errors.New("wrong usage")

// Options of a run. The zero value of a number is the benchmark's own default.
type Options struct {
	Redis    *redis.UniversalOptions // nil: no stack
	MQ       mq.Config
	DB       sql.Config
	Args     []string      // configuration flags that the processes get too
	Embedded bool          // canonical against `floodgate serve`, which needs nothing
	Users    int           // canonical: how many come, 1..1,000,000
	Units    int           // canonical: how many units there are, 1..Users
	Rate     float64       // canonical: buyers a second; 0: closed loop
	Conns    int           // connections of the crowd, 1..10,000
	For      time.Duration // one phase of accept, 1 s..1 min
	Rounds   int           // how often two ways are measured in turn, 1..20
	Flush    string        // accept: always, second, both or keep
	Binary   string        // the program under test; empty: this one
	History  string        // file of the results; empty: none is written
	Progress io.Writer     // what is going on, a line each
}

// runs are the benchmarks by name.
var runs = map[string]func(b *bench, ctx context.Context) error{
	"canonical": (*bench).canonical,
	"accept":    (*bench).accept,
	"place":     (*bench).place,
	"reserve":   (*bench).reserve,
	"memory":    (*bench).memory,
}

// longest bounds a run whatever happens.
const longest = 10 * time.Minute

// bench is one run.
type bench struct {
	opt    Options
	report *Report
	meters *meters
	dir    string // temporary folder
	user   int64  // last user that was made up
	cold   bool   // the broker was restarted and has not warmed up
	undo   []func() error
}

// Run runs one benchmark: canonical, accept, place, reserve or memory. An error means that there is no result; whether the books
// balance stands in the report.
func Run(ctx context.Context, name string, opt Options) (*Report, error) {
	run, known := runs[name]
	if !known {
		return nil, fmt.Errorf("%w: no benchmark %q", ErrUsage, name)
	}
	if err := opt.fill(); err != nil {
		return nil, err
	}
	if opt.Redis == nil && !(opt.Embedded && name == "canonical") {
		return nil, ErrNoStack
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	dir, err := os.MkdirTemp("", "floodgate-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{opt: opt, report: newReport(name), dir: dir, user: firstUser}
	b.onEnd(func() error { return os.RemoveAll(dir) })
	err = b.measure(ctx, run)
	if undone := b.end(); err == nil {
		err = undone
	}
	if err != nil {
		return nil, fmt.Errorf("bench %s: %w", name, err)
	}
	if opt.History != "" {
		err = b.report.remember(opt.History)
	}
	return b.report, err
}

func (b *bench) measure(ctx context.Context, run func(*bench, context.Context) error) error {
	b.report.Run = surroundings(ctx, b.opt)
	if b.opt.Redis != nil {
		b.meters = b.findMeters(ctx)
	} else {
		b.meters = &meters{pids: map[string]int{}}
	}
	return run(b, ctx)
}

// fill puts the defaults and refuses what is out of bounds.
func (o *Options) fill() error {
	set := func(v *int, fallback int) {
		if *v == 0 {
			*v = fallback
		}
	}
	set(&o.Users, 100_000)
	set(&o.Units, min(1000, o.Users))
	set(&o.Conns, 256)
	set(&o.Rounds, 3)
	if o.For == 0 {
		o.For = 3 * time.Second
	}
	if o.Flush == "" {
		o.Flush = "both"
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Binary == "" {
		var err error
		if o.Binary, err = os.Executable(); err != nil {
			return err
		}
	}
	switch {
	case o.Users < 1 || o.Users > 1_000_000:
		return fmt.Errorf("%w: users: %d: want 1 to 1000000", ErrUsage, o.Users)
	case o.Units < 1 || o.Units > o.Users:
		return fmt.Errorf("%w: units: %d: want 1 to the number of users", ErrUsage, o.Units)
	case o.Conns < 1 || o.Conns > 10_000:
		return fmt.Errorf("%w: connections: %d: want 1 to 10000", ErrUsage, o.Conns)
	case o.Rate < 0 || o.Rate > 1e6:
		return fmt.Errorf("%w: rate: %g: want 0 (closed loop) to 1000000", ErrUsage, o.Rate)
	case o.For < time.Second || o.For > time.Minute:
		return fmt.Errorf("%w: for: %s: want 1s to 1m", ErrUsage, o.For)
	case o.Rounds < 1 || o.Rounds > 20:
		return fmt.Errorf("%w: rounds: %d: want 1 to 20", ErrUsage, o.Rounds)
	case o.Flush != "always" && o.Flush != "second" && o.Flush != "both" && o.Flush != "keep":
		return fmt.Errorf("%w: flush: %q: want always, second, both or keep", ErrUsage, o.Flush)
	}
	return nil
}

// say tells what is going on.
func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.opt.Progress, format+"\n", args...) }

// onEnd is called at the end of the run, last first.
func (b *bench) onEnd(f func() error) { b.undo = append(b.undo, f) }

// end undoes everything, and gives the first failure.
func (b *bench) end() (first error) {
	for i := len(b.undo) - 1; i >= 0; i-- {
		if err := b.undo[i](); err != nil && first == nil {
			first = err
		}
	}
	b.undo = nil
	return first
}
