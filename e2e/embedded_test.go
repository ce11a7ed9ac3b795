package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"floodgate/identity"
	"floodgate/sale"
)

// newEmbedded starts `floodgate serve` with nothing installed; both names of an edge lead to it, so that a buyer of the other
// tests can shop here.
func newEmbedded(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, binary: build(t), dir: t.TempDir(), procs: map[string]*proc{}, client: &http.Client{Timeout: 5 * time.Second}}
	var err error
	if r.signer, err = identity.NewSigner(identity.Config{Alg: "HS256", Key: authKey}); err != nil {
		t.Fatal(err)
	}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "FLOODGATE_") {
			r.env = append(r.env, e)
		}
	}
	r.env = append(r.env, "FLOODGATE_AUTH_KEY="+authKey, "FLOODGATE_DATA_DIR="+filepath.Join(r.dir, "data"))
	r.start("serve", "serve", map[string]string{"edge": freePort(t), "notifier": freePort(t), "worker": freePort(t)})
	for _, name := range []string{"edge-1", "edge-2", "notifier", "console"} {
		r.procs[name] = r.procs["serve"]
	}
	t.Cleanup(func() {
		r.procs["serve"].stop()
		r.client.CloseIdleConnections()
		if t.Failed() {
			r.tails()
		}
	})
	return r
}

// Everything that was accepted is there after kill -9 of the one process, round after round, and the demo's activity opens by itself.
func TestServeSurvivesKill(t *testing.T) {
	t.Parallel()
	r := newEmbedded(t)
	serve := r.procs["serve"]
	var list struct {
		Activities []struct {
			ID    sale.ID
			Items []struct{ Total int64 }
		}
	}
	r.eventually(10*time.Second, "the demo activity is listed", func() bool {
		return r.get("http://"+serve.addr["edge"]+"/api/activities", "", &list) == http.StatusOK && len(list.Activities) == 1
	})
	if n := len(list.Activities[0].Items); n != 3 {
		t.Fatalf("the demo has %d items", n)
	}
	activity := r.activity(map[sale.ID]int64{itemA: stockA, itemB: 1000})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var accepted atomic.Int64
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	people := make([]*buyer, buyers)
	var clicks sync.WaitGroup
	for i := range people {
		item := itemA
		if i%3 == 2 {
			item = itemB
		}
		b := r.buyer(sale.ID(i+1), activity, item, rand.New(rand.NewPCG(rng.Uint64(), 0)), &accepted)
		people[i] = b
		clicks.Go(func() {
			if err := b.buy(ctx); err != nil {
				t.Error(err)
			}
		})
		if i == buyers/2 {
			serve.kill()
			serve.run()
		}
	}
	clicks.Wait()
	serve.kill() // what was accepted a moment ago is in the file
	serve.run()
	listening, hangUp := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, b := range people {
		all.Go(func() { b.listen(listening) })
	}
	var settling sync.WaitGroup
	for _, b := range people {
		settling.Go(func() {
			if err := b.settle(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	settling.Wait()
	hangUp()
	all.Wait()
	r.count(people)
	r.audit(activity)
	r.noRaces()
}

// A port in use, a folder that cannot be written, a wrong key or value: one line that says which and what to change, exit 2.
func TestWrongUsageIsOneLineAndExit2(t *testing.T) {
	t.Parallel()
	binary := build(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("edge:\n  lisen: :8080\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := "data.dir=" + t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--set", data, "--set", "edge.listen=" + taken.Addr().String()}, "edge.listen"},
		{[]string{"serve", "--set", "data.dir=" + filepath.Join(file, "below")}, "data.dir"},
		{[]string{"serve", "--set", data, "--set", "edge.lisen=:1"}, "did you mean edge.listen"},
		{[]string{"serve", "--config", bad}, "did you mean edge.listen"},
		{[]string{"serve", "--set", data, "--set", "edge.token_ttl=soon"}, "edge.token_ttl"},
		{[]string{"serve", "--set", data, "--set", "edge.token_ttl=1000h"}, "token_ttl"},
		{[]string{"serve", "--set", data, "--set", "auth.key=short"}, "auth"},
		{[]string{"serve", "--set", data, "--set", "limits.user=3"}, "limits"},
		{[]string{"edge", "--set", "internal.key=0123456789012345678901234567890123456789"}, "mq.driver"},
		{[]string{"serve", "extra"}, "serve"},
		{[]string{"sell"}, "unknown command"},
		{[]string{"migrate", "sideways"}, "migrate"},
	} {
		cmd := exec.Command(binary, c.args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
		var stderr strings.Builder
		cmd.Stderr = &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		text := strings.TrimSpace(stderr.String())
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(text, c.want) || strings.Count(text, "\n") > 0 {
			t.Errorf("floodgate %v: %v, stderr:\n%s\nwant exit 2 and one line with %q", c.args, err, text, c.want)
		}
	}
}

// The start line is JSON that scripts can wait for, with the address of every port that was taken.
func TestServeSaysWhereItIs(t *testing.T) {
	t.Parallel()
	binary := build(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	args := []string{"serve", "--set", "data.dir=" + t.TempDir()}
	for _, role := range []string{"edge", "notifier", "console", "worker"} {
		args = append(args, "--set", role+".listen=127.0.0.1:0")
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var line map[string]string
	text := make([]byte, 0, 4096)
	for buf := make([]byte, 1024); line["msg"] != "ready"; {
		n, err := out.Read(buf)
		if err != nil {
			t.Fatalf("no start line: %v\n%s", err, text)
		}
		text = append(text, buf[:n]...)
		if i := strings.Index(string(text), "{"); i >= 0 {
			_ = json.NewDecoder(strings.NewReader(string(text[i:]))).Decode(&line)
		}
	}
	for _, role := range []string{"edge", "notifier", "console"} {
		if c, err := net.Dial("tcp", line[role]); err != nil {
			t.Errorf("%s: %v", role, err)
		} else {
			c.Close()
		}
	}
	if token, err := os.ReadFile(line["operator_token_file"]); err != nil || len(token) < 32 {
		t.Errorf("operator token file: %v", err)
	}
	cancel()
	if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("stop: %v", err)
	}
}
