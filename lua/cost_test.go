package lua

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A reserve of 64 costs the same commands as one of 1: one HMGET, one HINCRBY, one HSET a hash, one ZADD, one XADD.
// Counted by Redis itself.
func TestReserveCostsOneCommandAHash(t *testing.T) {
	t.Parallel()
	w := real(t)
	w.open(t, 1000)
	w.reserve(t, crowd(0, 1)...) // the first one dates the keys
	got := commandsOf(t, w, func() { w.reserve(t, crowd(1, 64)...) })
	want := map[string]int{"INFO": 1, "TIME": 1, "HMGET meta": 1, "HGET stock": 1, "HMGET buyers": 1, "HMGET res": 1,
		"HINCRBY stock": 1, "HSET buyers": 1, "HSET res": 1, "ZADD pending": 1, "XADD ledger": 1}
	if !maps.Equal(got, want) {
		t.Errorf("commands of a reserve of 64\n got %v\nwant %v", got, want)
	}
}

var monitored = regexp.MustCompile(`^\+\S+ \[\d+ (\S+)\] "(\w+)"(?: "seckill:\{[\d.]+\}:(\w+)")?`)

// commandsOf counts what one script call does, from MONITOR: a script is atomic, so what follows its EVALSHA is its own.
func commandsOf(t *testing.T, w *world, call func()) map[string]int {
	t.Helper()
	conn := must[net.Conn](t)(net.Dial("tcp", w.rdb.Options().Addr))
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	lines := bufio.NewReaderSize(conn, 1<<20)
	fmt.Fprint(conn, "MONITOR\r\n")
	must[string](t)(lines.ReadString('\n'))
	call()
	w.rdb.Echo(w.ctx, "end of "+w.cell.Activity.String())
	counts, ours := map[string]int{}, false
	for {
		line := must[string](t)(lines.ReadString('\n'))
		m := monitored.FindStringSubmatch(line)
		switch {
		case strings.Contains(line, "end of "+w.cell.Activity.String()):
			return counts
		case m == nil || m[1] != "lua":
			ours = strings.Contains(line, `"evalsha"`) && strings.Contains(line, w.cell.Activity.String())
		case ours:
			counts[strings.TrimSpace(m[2]+" "+m[3])]++
		}
	}
}

// The stream of transitions is capped: a reserve after too many entries cuts it down to the cap and one node.
func TestLedgerIsCapped(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.open(t, 10)
		key := keysOf(w.cell)[keyLedger]
		must[[]redis.Cmder](t)(w.rdb.Pipelined(w.ctx, func(p redis.Pipeliner) error {
			for range ledgerCap + 1000 {
				p.XAdd(w.ctx, &redis.XAddArgs{Stream: key, Values: []string{"op", "x"}})
			}
			return nil
		}))
		w.reserve(t, wish(1))
		if n := must[int64](t)(w.rdb.XLen(w.ctx, key).Result()); n < ledgerCap || n > ledgerCap+100 {
			t.Errorf("%d entries, want %d or up to 100 more", n, ledgerCap)
		}
	})
}

// Numbers are written out: joined by `..` 10^14 is 1e+14 on Redis, and a clock in ms is one digit from there.
func TestNumbersAreWrittenOut(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		source := strings.TrimSuffix(verbSource("rebuild_live"), "\n") + "\n"
		source = source[:strings.Index(source, "-- rebuild_live ")] + "return text(1e14) .. ' ' .. text(2^53) .. ' ' .. text(-0.0) .. ' ' .. text(now_ms())"
		k := keysOf(w.cell)
		got := must[any](t)(w.rdb.Eval(w.ctx, source, k[:]).Result()).(string)
		if !regexp.MustCompile(`^100000000000000 9007199254740992 -?0 1\d{12}$`).MatchString(got) {
			t.Errorf("text() writes %q", got)
		}
	})
}

func verbSource(name string) string {
	for _, s := range scripts {
		if s.name == name {
			return s.source
		}
	}
	panic("no script " + name)
}
