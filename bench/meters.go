package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// meters read what processes use, from the system: the stack's parts and our own children.
type meters struct{ pids map[string]int }

// ticks a second of /proc/PID/stat: USER_HZ is 100 on every architecture that Go runs Linux on.
const ticks = 100

// findMeters finds the parts of the stack where they run on this machine: Redis says its own pid, the others' stand in the
// stack's folder.
func (b *bench) findMeters(ctx context.Context) *meters {
	m := &meters{pids: map[string]int{}}
	if len(b.opt.Redis.Addrs) == 1 && loopback(b.opt.Redis.Addrs[0]) {
		rdb := redis.NewUniversalClient(b.opt.Redis)
		defer rdb.Close()
		if pid, err := strconv.Atoi(infoField(rdb.Info(ctx, "server").Val(), "process_id")); err == nil {
			m.pids["redis"] = pid
		}
	}
	for _, part := range []string{"broker", "mariadb"} {
		text, err := os.ReadFile(filepath.Join(os.Getenv("FLOODGATE_STACK_DIR"), "pid", part))
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ") // the start time stands behind it
		pid, bad := strconv.Atoi(first)
		if err != nil || bad != nil {
			b.report.note("the CPU of %s is not known: no pid of it in FLOODGATE_STACK_DIR", part)
			continue
		}
		m.pids[part] = pid
	}
	return m
}

// read gives the CPU seconds that each process has used so far.
func (m *meters) read() map[string]float64 {
	out := map[string]float64{"bench": cpuOf(os.Getpid())}
	for name, pid := range m.pids {
		out[name] = cpuOf(pid)
	}
	return out
}

// since gives the CPU seconds used after an earlier reading.
func (m *meters) since(before map[string]float64) map[string]float64 {
	out := m.read()
	maps.DeleteFunc(out, func(name string, _ float64) bool { _, known := before[name]; return !known })
	for name := range out {
		out[name] -= before[name]
	}
	return out
}

// cpuOf is user and system time in seconds; 0 where the process is gone.
func cpuOf(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	return cpuIn(string(text))
}

// cpuIn reads /proc/PID/stat: the name in brackets may hold anything, fields 14 and 15 are the times.
func cpuIn(stat string) float64 {
	at := strings.LastIndexByte(stat, ')')
	f := strings.Fields(stat[at+1:])
	if at < 0 || len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / ticks
}

// memoryOf is the resident memory now and at its peak, in MiB.
func memoryOf(pid int) (now, peak float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmRSS:":
			now = kib / 1024
		case "VmHWM:":
			peak = kib / 1024
		}
	}
	return now, peak
}
