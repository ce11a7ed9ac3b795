package e2e

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// proc is one process that may be killed and started again at the same addresses.
type proc struct {
	rig  *rig
	name string
	args []string
	addr map[string]string // "edge" -> host:port

	mu   sync.Mutex // guards what follows
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// start makes a process of a role and waits until it says that it is ready.
func (r *rig) start(name, role string, addr map[string]string, set ...string) {
	r.t.Helper()
	args := []string{role}
	for role, a := range addr {
		args = append(args, "--set", role+".listen="+a)
	}
	console := freePort(r.t)
	args = append(args, "--set", "console.listen="+console)
	for _, s := range set {
		args = append(args, "--set", s)
	}
	p := &proc{rig: r, name: name, args: args, addr: map[string]string{"console": console}}
	for role, a := range addr {
		p.addr[role] = a
	}
	r.procs[name] = p
	p.run()
}

// run starts the process, with more environment where a kill point is wanted.
func (p *proc) run(env ...string) {
	p.rig.t.Helper()
	log, err := os.OpenFile(filepath.Join(p.rig.dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.rig.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(p.rig.binary, p.args...)
	cmd.Env, cmd.Stderr = append(append([]string(nil), p.rig.env...), env...), log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.rig.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.rig.t.Fatal(err)
	}
	done, ready := make(chan struct{}), make(chan bool, 1)
	p.mu.Lock()
	p.cmd, p.done = cmd, done
	p.mu.Unlock()
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			if strings.Contains(s.Text(), `"msg":"ready"`) {
				ready <- true
			}
		}
		_ = cmd.Wait()
		close(done)
	}()
	select {
	case <-ready:
	case <-done:
		p.rig.tails()
		p.rig.t.Fatalf("%s ended at its start: %v", p.name, cmd.ProcessState)
	case <-time.After(30 * time.Second):
		p.rig.t.Fatalf("%s is not ready within 30 s", p.name)
	}
}

// kill is kill -9.
func (p *proc) kill() {
	p.mu.Lock()
	cmd, done := p.cmd, p.done
	p.mu.Unlock()
	_ = cmd.Process.Kill()
	<-done
}

// died waits until the process has killed itself at its kill point; false where it does not within d.
func (p *proc) died(d time.Duration) bool {
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// stop asks the process to end, which it must within 15 s and without a race.
func (p *proc) stop() {
	p.mu.Lock()
	cmd, done := p.cmd, p.done
	p.mu.Unlock()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		p.rig.t.Errorf("%s does not stop within 15 s", p.name)
		_ = cmd.Process.Kill()
		<-done
	}
}

// tails prints the ends of the logs.
func (r *rig) tails() {
	logs, _ := filepath.Glob(filepath.Join(r.dir, "*.log"))
	for _, l := range logs {
		text, _ := os.ReadFile(l)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		r.t.Logf("%s:\n%s", filepath.Base(l), strings.Join(lines[max(0, len(lines)-25):], "\n"))
	}
}

// noRaces fails where any process has reported a data race or a panic.
func (r *rig) noRaces() {
	r.t.Helper()
	logs, _ := filepath.Glob(filepath.Join(r.dir, "*.log"))
	for _, l := range logs {
		text, _ := os.ReadFile(l)
		for _, bad := range []string{"WARNING: DATA RACE", "panic:"} {
			if i := bytes.Index(text, []byte(bad)); i >= 0 {
				r.t.Errorf("%s: %s", filepath.Base(l), text[i:min(len(text), i+4000)])
			}
		}
	}
}
