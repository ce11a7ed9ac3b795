package lua

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

//go:embed *.lua
var files embed.FS

// script is one verb: its whole source, the digest Redis knows it by, and the codes it may answer.
type script struct {
	name   string
	source string
	sha    any // string, boxed once
	codes  []Code
}

// scripts lists every verb, for Load.
var scripts []*script

// verb reads name.lua, puts the constants and the prelude before it, and registers it.
func verb(name string, codes ...Code) *script {
	var text strings.Builder
	text.WriteString(constants())
	for _, file := range []string{"prelude.lua", name + ".lua"} {
		b, err := files.ReadFile(file)
		if err != nil {
			panic("lua: " + err.Error()) // embedded at build time
		}
		text.Write(b)
		text.WriteByte('\n')
	}
	digest := sha1.Sum([]byte(text.String()))
	s := &script{name: name, source: text.String(), sha: hex.EncodeToString(digest[:]), codes: codes}
	scripts = append(scripts, s)
	return s
}

// constants spells the codes, times and channels of this package in Lua, so that they stand in one place only.
func constants() string {
	var b strings.Builder
	for _, c := range []struct {
		name  string
		value int64
	}{
		{"RESERVED", int64(Reserved)}, {"AGAIN", int64(Again)}, {"SETTLED", int64(Settled)}, {"UNKNOWN", int64(Unknown)},
		{"SOLD_OUT", int64(SoldOut)}, {"UNOPENED", int64(Unopened)}, {"DUPLICATE", int64(Duplicate)},
		{"NOT_STARTED", int64(NotStarted)}, {"ENDED", int64(Ended)}, {"UNPROVEN", int64(Unproven)}, {"STALE", int64(Stale)},
		{"REUSED", int64(Reused)}, {"FIRST_LOOK", FirstLook.Milliseconds()}, {"QUEUED_LOOK", QueuedLook.Milliseconds()},
		{"HOLD", Hold.Milliseconds()}, {"FORGET", Forget.Milliseconds()}, {"LEDGER_CAP", ledgerCap},
	} {
		fmt.Fprintf(&b, "local %s = %d\n", c.name, c.value)
	}
	fmt.Fprintf(&b, "local STOCK_CHANNEL, OUTCOME_CHANNEL = '%s', '%s'\n", StockChannel, OutcomeChannel)
	return b.String()
}

// code checks a script's answer against its closed list.
func (s *script) code(n int64) Code {
	if c := Code(n); slices.Contains(s.codes, c) {
		return c
	}
	panic(fmt.Sprintf("lua: %s answered %d, which is not in its list", s.name, n))
}

// argv is the argument list of one call, kept for the next one.
type argv struct{ args []any }

// argvs lends argument lists: a reserve of 64 has 201 arguments, and the hot path makes thousands of calls a second.
var argvs = sync.Pool{New: func() any { return &argv{args: make([]any, 0, 256)} }}

const evalsha, eval = "evalsha", "eval"

// newArgs starts a call: evalsha, digest, number of keys, keys, and the first argument of every script that reads it,
// "1" where Redis is embedded. Pointers are passed where they can be: boxing a pointer allocates nothing.
func (l *Ledger) newArgs(s *script, k *keys) *argv {
	a := argvs.Get().(*argv)
	a.args = append(a.args, evalsha, s.sha, len(k))
	for i := range k {
		a.args = append(a.args, &k[i])
	}
	a.args = append(a.args, &l.embedded)
	return a
}

func (a *argv) add(args ...any) { a.args = append(a.args, args...) }

// run makes the call and takes the arguments back. Where Redis has forgotten the script (restart, SCRIPT FLUSH) the
// call is made once more with the source, which also loads it: nothing ran before, so nothing runs twice.
func (l *Ledger) run(ctx context.Context, s *script, a *argv) (any, error) {
	defer func() {
		clear(a.args)
		a.args = a.args[:0]
		argvs.Put(a)
	}()
	reply, err := l.process(ctx, a.args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		a.args[0], a.args[1] = eval, s.source
		reply, err = l.process(ctx, a.args)
	}
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", s.name, err)
	}
	return reply, nil
}

func (l *Ledger) process(ctx context.Context, args []any) (any, error) {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	if err := l.rdb.Process(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// call is run for scripts off the hot path.
func (l *Ledger) call(ctx context.Context, s *script, c Cell, args ...any) (any, error) {
	a := l.newArgs(s, keysOf(c))
	a.add(args...)
	return l.run(ctx, s, a)
}

// callCode is call for scripts that answer one code.
func (l *Ledger) callCode(ctx context.Context, s *script, c Cell, args ...any) (Code, error) {
	reply, err := l.call(ctx, s, c, args...)
	if err != nil {
		return 0, err
	}
	return s.code(number(reply)), nil
}
