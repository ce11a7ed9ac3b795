package stacktest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Where private stacks take their ports: below the range that the system gives to clients, above the shared stacks.
const (
	firstPort     = 25000
	portsPerStack = 10
	ownStacks     = 300
)

// The parts of a stack, as deploy/stack names them.
const (
	PartRedis      = "redis"
	PartMariaDB    = "mariadb"
	PartNameServer = "namesrv"
	PartBroker     = "broker"
)

// Stack is a private stack whose parts a test may kill. Its methods may be called from any goroutine; a part that
// does not obey is reported as an error of the test.
type Stack struct {
	t   testing.TB
	dir string
	env []string
}

// Own starts a private stack (3 to 8 s) and deletes it when the test ends. It lives in own/ of the shared stack's
// folder, so that `deploy/stack down` also ends what a killed test left running.
func Own(t testing.TB) *Stack {
	t.Helper()
	s := &Stack{t: t, dir: filepath.Join(Dir(t), "own", unique())}
	port := claimPorts(t)
	s.env = append(os.Environ(), "FLOODGATE_STACK_DIR="+s.dir, fmt.Sprintf("FLOODGATE_STACK_PORT=%d", port), "FLOODGATE_STACK_FLUSH=always")
	t.Cleanup(func() { s.run("reset") })
	if !s.run("up") {
		t.FailNow()
	}
	s.env = append(s.env, readEnv(t, s.dir)...)
	return s
}

// Kill ends a part as kill -9 does and returns when it is gone.
func (s *Stack) Kill(part string) { s.t.Helper(); s.run("kill", part) }

// Stop ends a part cleanly and returns when it is gone; the broker takes 15 s.
func (s *Stack) Stop(part string) { s.t.Helper(); s.run("stop", part) }

// Start starts a part and returns when it answers: the broker takes 2 s, the others less.
func (s *Stack) Start(part string) { s.t.Helper(); s.run("start", part) }

// Env returns the process's environment with the variables of this stack, for exec.Cmd.
func (s *Stack) Env() []string { return append([]string(nil), s.env...) }

// Var returns the value of one variable of this stack, such as FLOODGATE_REDIS_ADDRS.
func (s *Stack) Var(name string) string {
	for i := len(s.env) - 1; i >= 0; i-- {
		if k, v, _ := strings.Cut(s.env[i], "="); k == name {
			return v
		}
	}
	return ""
}

func (s *Stack) run(args ...string) bool {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(projectRoot(s.t), "deploy", "stack"), args...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("deploy/stack %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return err == nil
}

// claimPorts returns the first of ten free ports. The last of the ten is held until the test ends: it marks the ten
// as taken for tests in other processes too, and a killed test lets it go.
func claimPorts(t testing.TB) int {
	t.Helper()
	for i := range ownStacks {
		base := firstPort + i*portsPerStack
		mark, err := listen(base + portsPerStack - 1)
		if err != nil {
			continue
		}
		if !free(base) {
			mark.Close()
			continue
		}
		t.Cleanup(func() { mark.Close() })
		return base
	}
	t.Fatalf("no ten free ports in %d..%d", firstPort, firstPort+ownStacks*portsPerStack)
	return 0
}

func free(base int) bool {
	for k := range portsPerStack - 1 {
		l, err := listen(base + k)
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}
