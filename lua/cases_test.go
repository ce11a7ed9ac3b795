package lua

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/redis/go-redis/v9"
)

// stored is what a cell's keys hold; a nil map or list in `after` means "as before".
type stored struct {
	Meta    map[string]string `yaml:"meta"`
	Stock   map[string]string `yaml:"stock"`
	Buyers  map[string]string `yaml:"buyers"`
	Res     map[string]string `yaml:"res"`
	Pending map[string]string `yaml:"pending"` // member -> when it is due
}

// scriptCase is one case of testdata/cases/<script>.yaml. NOW, NOW+n and NOW-n are instants of Redis's clock.
type scriptCase struct {
	Name   string `yaml:"name"`
	Empty  bool   `yaml:"empty"` // no meta but what `before` says
	Before stored `yaml:"before"`
	Call   string `yaml:"call"` // the verb and its arguments, see caseVerbs
	Reply  string `yaml:"reply"`
	After  stored `yaml:"after"`
}

// Every script has its file of cases, run on miniredis and on real Redis: state before, call, reply, state after.
// What `after` does not name must be as before.
func TestCases(t *testing.T) {
	for _, s := range scripts {
		if _, err := os.Stat(filepath.Join("testdata", "cases", s.name+".yaml")); err != nil {
			t.Errorf("script %s has no cases: %v", s.name, err)
		}
	}
	onBoth(t, func(t *testing.T, w *world) {
		files := must[[]string](t)(filepath.Glob("testdata/cases/*.yaml"))
		for _, file := range files {
			var cases []scriptCase
			if err := yaml.UnmarshalWithOptions(must[[]byte](t)(os.ReadFile(file)), &cases, yaml.DisallowUnknownField()); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, c := range cases {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+"/"+c.Name, func(t *testing.T) { w.runCase(t, c) })
			}
		}
	})
}

func (w *world) runCase(t *testing.T, c scriptCase) {
	if err := w.Drop(w.ctx, w.cell); err != nil {
		t.Fatal(err)
	}
	before := w.fill(t, c)
	if got := w.callVerb(t, c.Call); got != c.Reply {
		t.Errorf("%s\n got %s\nwant %s", c.Call, got, c.Reply)
	}
	want := stored{merged(before.Meta, c.After.Meta), orElse(c.After.Stock, before.Stock), orElse(c.After.Buyers, before.Buyers),
		orElse(c.After.Res, before.Res), orElse(c.After.Pending, before.Pending)}
	if want.Meta["run_id"] == "OWN" {
		want.Meta["run_id"], want.Meta["replid"] = w.identity(t)
	}
	got := w.stored(t)
	if !reflect.DeepEqual(plain(got), plain(want)) {
		t.Errorf("%s\n got %+v\nwant %+v", c.Call, plain(got), plain(want))
	}
}

// fill writes the state before, over a sound meta of epoch 3, and returns it as Redis holds it.
func (w *world) fill(t *testing.T, c scriptCase) stored {
	run, repl := w.identity(t)
	meta := map[string]string{"epoch": "3", "version": "7", "run_id": run, "replid": repl, "recovering": "0", "status": "live",
		"starts_at": "NOW-1000", "ends_at": "NOW+90000", "limit": "1", "hold_ms": "1800000", "expires_at": "NOW+210000", "building": "3"}
	if c.Empty {
		meta = map[string]string{}
	}
	k := keysOf(w.cell)
	for i, hash := range []map[string]string{merged(meta, c.Before.Meta), c.Before.Stock, c.Before.Buyers, c.Before.Res} {
		for field, value := range hash {
			must[int64](t)(w.rdb.HSet(w.ctx, k[i], instants(field), instants(value)).Result())
		}
	}
	for member, at := range c.Before.Pending {
		must[any](t)(w.rdb.Do(w.ctx, "zadd", k[keyPending], instants(at), member).Result())
	}
	return w.stored(t)
}

// identity reads what the scripts read.
func (w *world) identity(t testing.TB) (run, repl string) {
	if w.embedded == "1" {
		return "embedded", "embedded"
	}
	info := must[string](t)(w.rdb.Info(w.ctx, "server", "replication").Result())
	return regexp.MustCompile(`run_id:(\w+)`).FindStringSubmatch(info)[1], regexp.MustCompile(`master_replid:(\w+)`).FindStringSubmatch(info)[1]
}

func (w *world) stored(t testing.TB) stored {
	t.Helper()
	k := keysOf(w.cell)
	read := func(i int) map[string]string {
		return must[map[string]string](t)(w.rdb.HGetAll(context.Background(), k[i]).Result())
	}
	s := stored{read(0), read(keyStock), read(keyBuyers), read(keyRes), map[string]string{}}
	for _, z := range must[[]redis.Z](t)(w.rdb.ZRangeWithScores(w.ctx, k[keyPending], 0, -1).Result()) {
		s.Pending[z.Member.(string)] = strconv.FormatFloat(z.Score, 'f', 0, 64)
	}
	return s
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	for k, v := range b {
		if out[k] = v; v == "-" {
			delete(out, k)
		}
	}
	return out
}

func orElse(a, b map[string]string) map[string]string {
	if a == nil {
		return b
	}
	return a
}

var (
	relative = regexp.MustCompile(`NOW([+-]\d+)?`)
	absolute = regexp.MustCompile(`\b1[6-9]\d{11}\b`)
)

// instants turns NOW+5000 into epoch milliseconds.
func instants(s string) string {
	return relative.ReplaceAllStringFunc(s, func(m string) string {
		offset, _ := strconv.ParseInt(m[3:], 10, 64)
		return strconv.FormatInt(time.Now().UnixMilli()+offset, 10)
	})
}

// plain writes state in a comparable way: instants are rounded to what was meant, NOW plus thousands.
func plain(s stored) string {
	round := func(text string) string {
		return absolute.ReplaceAllStringFunc(text, func(m string) string {
			n, _ := strconv.ParseInt(m, 10, 64)
			d := (n - time.Now().UnixMilli() + 15_000) / 30_000 // a slow machine is seconds late; looks differ by 27 s and more
			if n < time.Now().UnixMilli()-15_000 {
				return "PAST"
			}
			return fmt.Sprintf("NOW+%ds", d*30)
		})
	}
	var b strings.Builder
	for i, m := range []map[string]string{s.Meta, s.Stock, s.Buyers, s.Res, s.Pending} {
		fmt.Fprintf(&b, "\n  %s:", []string{"meta", "stock", "buyers", "res", "pending"}[i])
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if k != "dated" && k != "catalog" {
				fmt.Fprintf(&b, " %s=%s", round(instants(k)), round(instants(m[k])))
			}
		}
	}
	return b.String()
}
