package stacktest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// variable returns the value of one of the stack's variables.
func variable(t testing.TB, name string) string {
	t.Helper()
	if v := os.Getenv(name); v != "" {
		return v
	}
	dir := os.Getenv("FLOODGATE_STACK_DIR")
	if dir == "" {
		dir = filepath.Join(projectRoot(t), ".stack")
	}
	for _, pair := range readEnv(t, dir) {
		if k, v, _ := strings.Cut(pair, "="); k == name {
			return v
		}
	}
	t.Fatalf("%s sets no %s: run `deploy/stack up` again", filepath.Join(dir, "env"), name)
	return ""
}

// readEnv returns what a stack's file env sets, as NAME=value.
func readEnv(t testing.TB, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "env"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatal(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for line := range strings.Lines(string(text)) {
		k, v, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if ok {
			pairs = append(pairs, k+"="+strings.Trim(v, "'"))
		}
	}
	return pairs
}

// projectRoot returns the folder of go.mod above the test's working directory.
func projectRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}
