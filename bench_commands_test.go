package main

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"

	"floodgate/bench"
)

// Without a stack every benchmark says how to get one, as a wrong use: exit code 2.
func TestBenchWithoutStack(t *testing.T) {
	for _, name := range []string{"FLOODGATE_REDIS_ADDRS", "FLOODGATE_MQ_DRIVER", "FLOODGATE_DB_DRIVER"} {
		t.Setenv(name, "")
	}
	t.Setenv("FLOODGATE_MQ_DRIVER", "table")
	t.Setenv("FLOODGATE_DB_DRIVER", "sqlite")
	for _, args := range [][]string{{"bench"}, {"bench", "accept"}, {"bench", "place"}, {"bench", "reserve"}, {"bench", "memory"}, {"bench", "canonical"}} {
		root := newRoot()
		root.SetArgs(args)
		if err := root.Execute(); err == nil || err.Error() != bench.ErrNoStack.Error() || exitCode(err) != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
	for _, args := range [][]string{{"bench", "-o", "xml"}, {"bench", "--users", "0.5"}, {"bench", "nothing"}, {"bench", "--embedded", "--users", "-1"}} {
		root := newRoot()
		root.SetArgs(args)
		if err := root.Execute(); exitCode(err) != 2 {
			t.Errorf("%v: %v, want exit code 2", args, err)
		}
	}
}

// Books that do not balance fail the run, a goal that is missed does not.
func TestBenchExitCodes(t *testing.T) {
	for _, f := range []struct {
		balanced bool
		code     int
	}{{true, 0}, {false, 1}} {
		cmd, out := &cobra.Command{}, &bytes.Buffer{}
		cmd.SetOut(out)
		cmd.SetErr(&bytes.Buffer{})
		r := &bench.Report{Name: "accept", Goals: []bench.Goal{{Name: "x", Want: ">= 1"}}, Books: bench.Books{Balanced: f.balanced}}
		if got := exitCode(showReport(cmd, r, "json")); got != f.code || !bytes.Contains(out.Bytes(), []byte(`"met": false`)) {
			t.Errorf("balanced %v: exit code %d\n%s", f.balanced, got, out)
		}
	}
}
