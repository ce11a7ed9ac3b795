package bench

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9"
)

// flushNow is how Redis flushes, in the words of deploy/stack, which sets all parts alike.
func (b *bench) flushNow(ctx context.Context) string {
	rdb := redis.NewUniversalClient(b.opt.Redis)
	defer rdb.Close()
	if rdb.ConfigGet(ctx, "appendfsync").Val()["appendfsync"] == "always" {
		return "always"
	}
	return "second"
}

// stackScript is deploy/stack of the sources where it runs the stack that we measure; empty where the stack is not ours to change.
func (b *bench) stackScript(ctx context.Context) string {
	root := Root()
	if root == "" {
		return ""
	}
	script := filepath.Join(root, "deploy", "stack")
	out, err := exec.CommandContext(ctx, script, "env").Output()
	if err != nil || !strings.Contains("\n"+string(out), "\nexport FLOODGATE_REDIS_ADDRS="+b.opt.Redis.Addrs[0]+"\n") {
		return ""
	}
	return script
}

// flushModes are the ways of flushing to measure, and what puts the stack back as it was.
func (b *bench) flushModes(ctx context.Context) ([]string, func()) {
	script := b.stackScript(ctx)
	if b.opt.Flush == "keep" || script == "" {
		if b.opt.Flush != "keep" {
			b.report.note("the stack is not one of deploy/stack here, so its flushing stays as it is")
		}
		return []string{b.flushNow(ctx)}, func() {}
	}
	was := b.flushNow(ctx)
	modes := []string{b.opt.Flush}
	if b.opt.Flush == "both" {
		modes = []string{"second", "always"}
	}
	return modes, func() {
		if err := b.flushTo(context.WithoutCancel(ctx), was); err != nil {
			b.report.note("the stack's flushing was not put back to %s: %v", was, err)
		}
	}
}

// flushTo changes how often the stack writes to disk, where that differs and the stack is ours. The broker is restarted for it.
func (b *bench) flushTo(ctx context.Context, mode string) error {
	script := b.stackScript(ctx)
	if script == "" || b.flushNow(ctx) == mode {
		return nil
	}
	b.say("deploy/stack flush %s", mode)
	if out, err := exec.CommandContext(ctx, script, "flush", mode).CombinedOutput(); err != nil {
		return fmt.Errorf("deploy/stack flush %s: %w\n%s", mode, err, out)
	}
	b.meters, b.cold = b.findMeters(ctx), true // the broker is a new process
	return nil
}
