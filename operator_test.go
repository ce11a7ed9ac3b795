package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"floodgate/sql"
)

// TestMain lets scripts run this very binary as `floodgate`.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"floodgate": main})
}

// The operators' commands against a running `floodgate serve`, one server a script.
func TestOperators(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/operator",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "damage": damage, "buy": buy, "field": field,
		},
		Setup: startServer,
	})
}

// saleFile is an activity that opens in two days, for an hour.
func saleFile() string {
	starts := time.Now().Add(48 * time.Hour) // workers preheat a day before
	return fmt.Sprintf("title: 秒杀\nstartsAt: %s\nendsAt: %s\nperUserLimit: 2\npayWindow: 15m\nitems:\n  - {commodityId: \"9007199254740993\", title: 耳机, price: \"99.00\", total: 10}\n",
		starts.Format(time.RFC3339), starts.Add(time.Hour).Format(time.RFC3339))
}

// withoutOurs is this process's environment without what configures floodgate: the stack of the other tests is not this server's.
func withoutOurs() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "FLOODGATE_") })
}

// startServer starts everything in one process on free ports, and tells the script's commands where it is.
func startServer(env *testscript.Env) error {
	if err := os.WriteFile(filepath.Join(env.WorkDir, "sale.yaml"), []byte(saleFile()), 0o600); err != nil {
		return err
	}
	dir := filepath.Join(env.WorkDir, "data")
	cmd := exec.Command("floodgate", "serve", "--set", "data.dir="+dir)
	cmd.Env = append(withoutOurs(), "FLOODGATE_EDGE_LISTEN=127.0.0.1:0", "FLOODGATE_NOTIFIER_LISTEN=127.0.0.1:0", "FLOODGATE_WORKER_LISTEN=127.0.0.1:0", "FLOODGATE_CONSOLE_LISTEN=127.0.0.1:0")
	logs, err := os.Create(filepath.Join(env.WorkDir, "serve.log"))
	if err != nil {
		return err
	}
	cmd.Stderr = logs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	env.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = logs.Close()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var ready map[string]string
		if json.Unmarshal(lines.Bytes(), &ready) == nil && ready["msg"] == "ready" {
			env.Setenv("FLOODGATE_CONSOLE_LISTEN", ready["console"])
			env.Setenv("FLOODGATE_DATA_DIR", dir)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // built with -race, each command would sleep for a second at its end
			env.Setenv("EDGE", "http://"+ready["edge"])
			return nil
		}
	}
	text, _ := os.ReadFile(logs.Name())
	return fmt.Errorf("serve did not start:\n%s", text)
}

// exits runs a command that must exit with this code: exits 2 floodgate …
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// damage runs a statement on the server's database.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open(context.Background(), sql.Config{Driver: sql.SQLite, DSN: filepath.Join(ts.Getenv("FLOODGATE_DATA_DIR"), "floodgate.db")})
	ts.Check(err)
	defer db.Close()
	_, err = db.DB().ExecContext(context.Background(), args[0])
	ts.Check(err)
}

// field puts a text field of the JSON on the last command's stdout into a variable: field ID id
func field(ts *testscript.TestScript, _ bool, args []string) {
	var v map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	text, ok := v[args[1]].(string)
	if !ok {
		ts.Fatalf("no field %s in %v", args[1], v)
	}
	ts.Setenv(args[0], text)
}

// buy buys one unit as the owner of the JWT in $JWT and waits for its order: buy ACTIVITY ITEM. The request token is in $REQUEST then.
func buy(ts *testscript.TestScript, _ bool, args []string) {
	call := func(method, path, body string) map[string]any {
		r, err := http.NewRequestWithContext(context.Background(), method, ts.Getenv("EDGE")+path, strings.NewReader(body))
		ts.Check(err)
		r.Header.Set("Authorization", "Bearer "+ts.Getenv("JWT"))
		resp, err := http.DefaultClient.Do(r)
		ts.Check(err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		ts.Check(err)
		v := map[string]any{"status": resp.Status}
		if err := json.Unmarshal(text, &v); err != nil {
			ts.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
		}
		return v
	}
	eventually(ts, "a request token", func() (any, bool) {
		v := call("POST", "/api/activities/"+args[0]+"/token", "{}")
		token, ok := v["requestToken"].(string)
		ts.Setenv("REQUEST", token)
		return v, ok
	})
	path := "/api/activities/" + args[0] + "/items/" + args[1] + "/orders"
	body := fmt.Sprintf(`{"requestToken":%q,"quantity":1}`, ts.Getenv("REQUEST"))
	eventually(ts, "accepted", func() (any, bool) { v := call("POST", path, body); return v, v["outcome"] == "accepted" })
	eventually(ts, "an order", func() (any, bool) {
		v := call("GET", "/api/requests/"+ts.Getenv("REQUEST"), "")
		return v, v["outcome"] == "pending_payment" && v["state"] == "committed"
	})
}

// eventually asks until it holds, at most 15 s; catalogs are a second old, and orders are placed soon.
func eventually(ts *testscript.TestScript, what string, ask func() (any, bool)) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(15 * time.Second); ; {
		last, ok := ask()
		if ok {
			return
		}
		select {
		case <-deadline:
			ts.Fatalf("no %s: %v", what, last)
		case <-tick.C:
		}
	}
}
