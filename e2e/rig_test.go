// Package e2e runs the real binary as real processes against the real stack, kills what it can, and checks the promises from
// outside: the books by the audit, each buyer's outcome by push, by poll and by the order list.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/deploy/stacktest"
	"floodgate/identity"
	"floodgate/sale"
)

var (
	rounds = flag.Int("e2e.rounds", 10, "rounds of TestKill")
	seed   = flag.Uint64("e2e.seed", 0, "seed of TestKill; 0 takes the clock")
)

// Keys of the processes under test.
const (
	authKey     = "an end-to-end test's key of buyers, 32+ bytes"
	internalKey = "an end-to-end test's key of processes, 32+ bytes"
)

// rig is one installation: a private stack and the processes of every role.
type rig struct {
	t      *testing.T
	stack  *stacktest.Stack
	binary string
	dir    string
	env    []string
	procs  map[string]*proc
	signer *identity.Signer
	client *http.Client
	rdb    *redis.Client // for damage by hand, and to see what no answer tells; TestCases alone
	db     *sql.DB
}

// build makes the binary under test with the race detector and the kill points, once a test run.
func build(t *testing.T) string {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

var built = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(binaries, "floodgate")
	cmd := exec.Command("go", "build", "-race", "-tags", "crashpoints", "-o", binary, "floodgate")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build: %w\n%s", err, out)
	}
	return binary, nil
})

// binaries is the folder of what was built.
var binaries string

func TestMain(m *testing.M) {
	var err error
	if binaries, err = os.MkdirTemp("", "floodgate-e2e"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(binaries)
	os.Exit(code)
}

// newRig starts a private stack, two edges, two workers, a notifier and a console; env is added to every process's.
func newRig(t *testing.T, env ...string) *rig {
	t.Helper()
	binary := build(t)
	r := &rig{t: t, binary: binary, stack: stacktest.Own(t), dir: t.TempDir(), procs: map[string]*proc{},
		client: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	var err error
	if r.signer, err = identity.NewSigner(identity.Config{Alg: "HS256", Key: authKey}); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.stack.Env(), "FLOODGATE_AUTH_KEY="+authKey, "FLOODGATE_INTERNAL_KEY="+internalKey, "FLOODGATE_DATA_DIR="+r.dir)
	r.env = append(r.env, env...)
	if out, err := r.command("migrate", "up"); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	w1, w2 := freePort(t), freePort(t)
	r.start("worker-1", "worker", map[string]string{"worker": w1})
	r.start("worker-2", "worker", map[string]string{"worker": w2})
	r.start("notifier", "notifier", map[string]string{"notifier": freePort(t)})
	for _, name := range []string{"edge-1", "edge-2"} {
		r.start(name, "edge", map[string]string{"edge": freePort(t)}, "edge.workers="+w1+","+w2)
	}
	r.start("console", "console", nil)
	t.Cleanup(func() {
		for _, p := range r.procs {
			p.stop()
		}
		r.client.CloseIdleConnections()
		if t.Failed() {
			r.tails()
		}
	})
	return r
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// command runs an operator's command against the rig's console.
func (r *rig) command(args ...string) (string, error) {
	cmd := exec.Command(r.binary, args...)
	cmd.Env = r.env
	if c := r.procs["console"]; c != nil {
		cmd.Args = append(cmd.Args, "--set", "console.listen="+c.addr["console"])
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// offer is what an activity sells; what is left out is as most tests want it.
type offer struct {
	totals       map[sale.ID]int64
	limit        int    // 1
	starts, ends string // RFC 3339; a second ago, in an hour
}

// activity creates one that is open at once, and waits until both edges sell it.
func (r *rig) activity(items map[sale.ID]int64) sale.ID {
	r.t.Helper()
	return r.offer(offer{totals: items})
}

// offer creates an activity and waits until both edges have it.
func (r *rig) offer(o offer) sale.ID {
	r.t.Helper()
	var lines strings.Builder
	for id, total := range o.totals {
		fmt.Fprintf(&lines, "  - {commodityId: \"%s\", title: thing, price: \"19.99\", total: %d}\n", id, total)
	}
	text := fmt.Sprintf("title: e2e\nstartsAt: %q\nendsAt: %q\nperUserLimit: %d\npayWindow: 15m\nitems:\n%s",
		cmp.Or(o.starts, time.Now().Add(-time.Second).Format(time.RFC3339Nano)),
		cmp.Or(o.ends, time.Now().Add(time.Hour).Format(time.RFC3339)), cmp.Or(o.limit, 1), lines.String())
	file := filepath.Join(r.t.TempDir(), "activity.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	out, err := r.command("activity", "create", "-f", file, "-o", "json")
	var created struct {
		ID sale.ID `json:"id"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &created)
	}
	if err != nil {
		r.t.Fatalf("activity create: %v\n%s", err, out)
	}
	r.shown(created.ID, "edge-1", "edge-2")
	return created.ID
}

// shown waits until edges have an activity in their catalog.
func (r *rig) shown(activity sale.ID, edges ...string) {
	r.t.Helper()
	for _, edge := range edges {
		url := "http://" + r.procs[edge].addr["edge"] + "/api/activities/" + activity.String()
		r.eventually(30*time.Second, "the activity is live on "+edge, func() bool {
			var a struct{ Status string }
			return r.get(url, "", &a) == http.StatusOK && a.Status == "live"
		})
	}
}

// get reads JSON; 0 is no answer.
func (r *rig) get(url, token string, into any) int {
	return r.call(context.Background(), http.MethodGet, url, token, nil, into)
}

func (r *rig) call(ctx context.Context, method, url, token string, body []byte, into any) int {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	if json.NewDecoder(res.Body).Decode(into) != nil {
		return 0
	}
	return res.StatusCode
}

// eventually polls until the condition holds.
func (r *rig) eventually(d time.Duration, what string, holds func() bool) {
	r.t.Helper()
	if !poll(context.Background(), d, holds) {
		r.tails()
		r.t.Fatalf("not within %s: %s", d, what)
	}
}

// poll tries every 50 ms until the condition holds, the time is over or ctx ends.
func poll(ctx context.Context, d time.Duration, holds func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(d)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// audit demands balanced books; exit code 1 is broken ones.
func (r *rig) audit(activity sale.ID) {
	r.t.Helper()
	var out string
	if !poll(context.Background(), 20*time.Second, func() bool {
		var err error
		out, err = r.command("audit", activity.String(), "-o", "json")
		return err == nil
	}) {
		r.tails()
		r.t.Fatalf("audit of activity %s: %s", activity, out)
	}
}

var errNoOutcome = errors.New("no outcome")
