//go:build crashpoints

package crashpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var (
	want, times = parse(os.Getenv("FLOODGATE_CRASHPOINT"))
	passed      atomic.Int64
)

func parse(s string) (string, int64) {
	name, n, _ := strings.Cut(s, ":")
	k, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		k = 1
	}
	return name, k
}

// At kills the process at the wanted pass of the wanted point.
func At(name string) {
	if name == want && passed.Add(1) == times {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
