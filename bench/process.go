package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	readyWithin = 30 * time.Second // a start takes 0.1 to 1 s
	stopWithin  = 15 * time.Second // a graceful stop takes at most 10 s
)

// process is one role of Floodgate, a child of this process.
type process struct {
	name  string
	cmd   *exec.Cmd
	done  chan struct{}     // closed when it has ended
	ready map[string]string // its start line: addresses by role
	log   string
}

// start runs a role and waits until it says that it is ready.
func (b *bench) start(ctx context.Context, name string, env []string, args ...string) (*process, error) {
	p := &process{name: name, done: make(chan struct{}), log: filepath.Join(b.dir, name+".log")}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(b.opt.Binary, args...)
	p.cmd.Env, p.cmd.Stderr = env, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // Ctrl-C is ours: we stop them in order
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	ready := make(chan map[string]string, 1)
	go func() { // ends with the process, which stop waits for
		defer close(p.done)
		for s := bufio.NewScanner(out); s.Scan(); {
			var line map[string]string
			if json.Unmarshal(s.Bytes(), &line) == nil && line["msg"] == "ready" {
				ready <- line
			}
		}
		_ = p.cmd.Wait()
	}()
	select {
	case p.ready = <-ready:
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("%s ended at its start: %s", name, p.tail())
	case <-time.After(readyWithin):
		err = fmt.Errorf("%s is not ready within %s", name, readyWithin)
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.kill()
	return nil, err
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks the process to finish what it has in hand, and kills it where it does not.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		if !p.cmd.ProcessState.Success() {
			return fmt.Errorf("%s ended with %s: %s", p.name, p.cmd.ProcessState, p.tail())
		}
		return nil
	case <-time.After(stopWithin):
		p.kill()
		return fmt.Errorf("%s did not stop within %s", p.name, stopWithin)
	}
}

// tail is the end of the process's log, in one line.
func (p *process) tail() string {
	text, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

func (p *process) pid() int { return p.cmd.Process.Pid }
