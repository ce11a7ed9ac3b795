package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The RocketMQ client's cache of parsed names has one cleaner for the process, started by importing it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/patrickmn/go-cache.(*janitor).Run"))
}

// The workload that matters, small, against the real program with everything inside.
func TestCanonicalEmbedded(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "floodgate")
	if out, err := exec.Command("go", "build", "-o", binary, "floodgate").CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	history := filepath.Join(t.TempDir(), "history.jsonl")
	var said bytes.Buffer
	r, err := Run(t.Context(), "canonical", Options{Embedded: true, Users: 2000, Units: 50, Conns: 32, Binary: binary, History: history, Progress: &said})
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	b := r.Books
	if !b.Balanced || b.Total != 50 || b.Remaining != 0 || b.LiveOrders != 50 || b.Accepted != 50 || b.WithoutOutcome != 0 {
		t.Errorf("books: %+v", b)
	}
	for _, name := range []string{"buyers_per_s", "refusals_per_s", "accepted_per_s", "time_to_last_unit_ms", "accepted_p99_ms", "outcome_pushed_p99_9_ms", "cpu_us_per_buyer.serve"} {
		if r.Figures[name] <= 0 {
			t.Errorf("%s is %v", name, r.Figures[name])
		}
	}
	if f := r.Figures; f["users"] != 2000 || f["accepted"] != 50 {
		t.Errorf("figures: %v", f)
	}
	text, err := os.ReadFile(history)
	if err != nil || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("history: %q (%v)", text, err)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	f := func(name string, o Options, want error) {
		t.Helper()
		if _, err := Run(t.Context(), name, o); !errors.Is(err, want) {
			t.Errorf("bench %s %+v: %v, want %v", name, o, err, want)
		}
	}
	f("canonical", Options{}, ErrNoStack)
	f("accept", Options{Embedded: true}, ErrNoStack) // only canonical runs without the stack
	f("nothing", Options{}, ErrUsage)
	f("canonical", Options{Users: 10, Units: 11}, ErrUsage)
	f("canonical", Options{Users: 1_000_001}, ErrUsage)
	f("canonical", Options{Conns: 10_001}, ErrUsage)
	f("canonical", Options{Rate: -1}, ErrUsage)
	f("accept", Options{For: time.Hour}, ErrUsage)
	f("accept", Options{Rounds: 21}, ErrUsage)
	f("accept", Options{Flush: "never"}, ErrUsage)
}

// A process that cannot start ends the run with its own words.
func TestRunTellsWhatFailed(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), "canonical", Options{Embedded: true, Binary: "/bin/false"})
	if err == nil || !strings.Contains(err.Error(), "serve ended at its start") {
		t.Error(err)
	}
}

func sample() *Report {
	r := newReport("accept")
	r.Run = Surroundings{Commit: "0123456789", Machine: "a machine", Cores: 2, Versions: map[string]string{"go": "go1.26"}}
	r.set("rate_per_s", 12345.678)
	r.set("p99_ms", 3.14159)
	r.set("none", math.NaN())
	r.atLeast("rate_per_s", 20_000)
	r.atMost("p99_ms", 50)
	r.atMost("never_measured", 50)
	r.Books.add(Books{Balanced: true, Total: 10, Remaining: 4, Occupied: 1, LiveOrders: 5, Accepted: 6})
	return r
}

func TestReportIsTheContracts(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := sample().WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Figures map[string]float64
		Goals   []map[string]any
		Books   map[string]any
		Run     map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Figures["rate_per_s"] != 12350 || got.Figures["p99_ms"] != 3.142 || got.Figures["none"] != 0 {
		t.Errorf("figures: %v", got.Figures)
	}
	for i, want := range []struct {
		name string
		met  bool
	}{{"rate_per_s", false}, {"p99_ms", true}, {"never_measured", false}} {
		g := got.Goals[i]
		if g["name"] != want.name || g["met"] != want.met || g["want"] == nil || g["got"] == nil {
			t.Errorf("goal %d: %v", i, g)
		}
	}
	if got.Books["balanced"] != true || got.Books["accepted"] != 6.0 || got.Run["commit"] != "0123456789" || got.Run["machine"] != "a machine" {
		t.Errorf("books %v, run %v", got.Books, got.Run)
	}
}

func TestReportForPeople(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Books.fault("a unit is %s", "lost")
	r.note("others ran too")
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rate_per_s", "12350", "missed", "reached", "DO NOT BALANCE", "a unit is lost", "others ran too"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestHistoryGrowsByALine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "history.jsonl")
	for range 2 {
		if err := sample().remember(file); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := os.ReadFile(file)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var line struct {
		At, Bench string
		Run       Surroundings
		Figures   map[string]float64
	}
	if len(lines) != 2 || json.Unmarshal([]byte(lines[1]), &line) != nil || line.At == "" || line.Bench != "accept" || line.Run.Cores != 2 || len(line.Figures) != 3 {
		t.Errorf("%d lines, %+v", len(lines), line)
	}
}

func TestBooksAddUp(t *testing.T) {
	t.Parallel()
	b := Books{Balanced: true, Total: 1}
	b.add(Books{Balanced: false, Total: 2, Faults: []string{"x"}})
	b.add(Books{Balanced: true, Total: 3})
	if b.Balanced || b.Total != 6 || len(b.Faults) != 1 {
		t.Errorf("%+v", b)
	}
}

func TestCPUIn(t *testing.T) {
	t.Parallel()
	stat := "4242 (a (strange) name) S 1 4242 4242 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 9 0 100 1000 10"
	if got := cpuIn(stat); got != 2 {
		t.Errorf("%v s, want 2", got)
	}
	if cpuIn("") != 0 || cpuIn("1 (x") != 0 {
		t.Error("half a line has no time")
	}
	if cpuOf(os.Getpid()) < 0 {
		t.Error("a negative time")
	}
	if now, peak := memoryOf(os.Getpid()); now <= 1 || peak < now {
		t.Errorf("%v MiB, peak %v", now, peak)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	f := func(status int, body string, want int) {
		t.Helper()
		if got := kindOf(status, []byte(body)); got != want {
			t.Errorf("%d %s: %d, want %d", status, body, got, want)
		}
	}
	f(202, `{"outcome":"accepted"}`, accepted)
	f(409, `{"error":{"code":"sold_out"}}`, soldOut)
	f(409, `{"error":{"code":"duplicate"}}`, duplicate)
	f(409, `{"error":{"code":"token_reused"}}`, other)
	f(503, `{"error":{"code":"busy"}}`, busy)
	f(200, ``, other)
	token := strings.Repeat("t", 59)
	if got, ok := tokenIn([]byte(`{"requestToken":"` + token + `","expiresAt":1}`)); !ok || string(got) != token {
		t.Error(got, ok)
	}
	if _, ok := tokenIn([]byte(`{"requestToken":"short"}`)); ok {
		t.Error("a short token was read")
	}
	for _, v := range []struct {
		in   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(v.in); got != v.want {
			t.Errorf("median of %v: %v", v.in, got)
		}
	}
}
