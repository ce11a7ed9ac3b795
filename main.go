// Floodgate sells a limited stock to a crowd. One binary, one command a role; `floodgate serve` is all of them at once.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// errCheckFailed is a check that ran and found something: exit code 1, the finding is printed already.
var errCheckFailed = errors.New("the check failed")

// main is the life of the process: parse, run one command, one exit.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := newRoot().ExecuteContext(ctx)
	os.Exit(exitCode(err))
}

// exitCode prints the error and chooses: 0 fine, 1 the check or the run failed, 2 wrong usage or configuration.
func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errCheckFailed):
		return 1
	}
	fmt.Fprintln(os.Stderr, "floodgate:", strings.ReplaceAll(err.Error(), "\n", "; ")) // joined faults stay one line
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}
