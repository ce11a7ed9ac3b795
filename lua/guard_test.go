package lua

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"floodgate/sale"
)

func randomNonce() uint64 { return rand.Uint64() }

// A user whose ACL lacks INFO cannot prove anything: every script that moves stock answers unproven, and open refuses.
func TestWithoutInfoNothingMoves(t *testing.T) {
	t.Parallel()
	w := real(t)
	w.open(t, 5)
	user := "floodgate-" + w.cell.Activity.String()
	must[any](t)(w.rdb.Do(w.ctx, "ACL", "SETUSER", user, "on", ">x", "~*", "&*", "+@all", "-info").Result())
	t.Cleanup(func() { w.rdb.Do(w.ctx, "ACL", "DELUSER", user) })
	rdb := redis.NewClient(&redis.Options{Addr: w.rdb.Options().Addr, Username: user, Password: "x"})
	t.Cleanup(func() { rdb.Close() })
	blind := *w
	blind.Ledger = New(rdb, Options{})
	before := blind.stored(t)
	for call, want := range map[string]string{
		"reserve 9007199254740993 1 a:11:1": "-5 remaining=0 epoch=1 version=0 pending=", "claim a:11:9007199254740993:1:1": "-5 epoch=1",
		"commit a:paid": "-5", "release a:closed": "-5", "due 1": ErrUnproven.Error(), "restock 9007199254740993 1 1 op": "-5", "rebuild_live 1": "-5",
	} {
		if got := blind.callVerb(t, call); got != want {
			t.Errorf("%s: got %s, want %s", call, got, want)
		}
	}
	if after := blind.stored(t); plain(after) != plain(before) {
		t.Errorf("something moved: %v, before %v", after, before)
	}
	must[Code](t)(w.RebuildBegin(w.ctx, w.cell, 2))
	if got := blind.callVerb(t, "rebuild_end 2 5:1"); !strings.HasPrefix(got, ErrUnproven.Error()) {
		t.Errorf("rebuild_end: got %s, want unproven", got)
	}
	if err := w.Drop(w.ctx, w.cell); err != nil {
		t.Fatal(err)
	}
	if got := blind.callVerb(t, "open 1 5:1"); !strings.HasPrefix(got, ErrUnproven.Error()) {
		t.Errorf("open: got %s, want unproven", got)
	}
}

// Case 5: one user cannot keep others from the stock by asking often.
func TestCase05OneUserAsksAHundredTimes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.open(t, 10)
		batch := crowd(1, 100)
		for i := range batch {
			batch[i].User = 1
		}
		codes := codesOf(w.reserve(t, batch...))
		if count(codes, Reserved) != 1 || count(codes, Duplicate) != 99 {
			t.Errorf("u1: %v", codes)
		}
		r := w.reserve(t, crowd(200, 9)...)
		if count(codesOf(r), Reserved) != 9 || r.Remaining != 0 {
			t.Errorf("u2..u10: %v, %d remain", codesOf(r), r.Remaining)
		}
	})
}

// Case 7: a limit holds against parallel calls, and every refusal names the live token.
func TestCase07ParallelBuysOfOneUser(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.open(t, 100)
		replies := make([]ReserveReply, 64)
		inParallel(64, func(i int) {
			r := wish(i)
			r.User = 1
			replies[i] = w.reserve(t, r)
		})
		var codes []Code
		live := map[sale.Token]bool{}
		for i, r := range replies {
			codes = append(codes, codesOf(r)...)
			if r.Answers[0].Code == Reserved {
				live[wish(i).Token] = true
			}
			for _, token := range r.Answers[0].Live {
				live[token] = true
			}
		}
		if n := must[State](t)(w.Inspect(w.ctx, w.cell)).Remaining[item]; count(codes, Reserved) != 1 || count(codes, Duplicate) != 63 || n != 99 || len(live) != 1 {
			t.Errorf("%v, %d remain, live %v", codes, n, live)
		}
	})
}

func inParallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// Case 41: scripts are forgotten in the middle of 1000 buys; nobody gets an error and units taken == accepted.
func TestCase41ScriptFlush(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		if err := w.Load(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.open(t, 900)
		var mu sync.Mutex
		accepted := 0
		inParallel(10, func(g int) {
			for i := range 25 {
				if i%5 == g%5 {
					must[string](t)(w.rdb.ScriptFlush(w.ctx).Result())
				}
				r := w.reserve(t, crowd(g*1000+i*4, 4)...)
				mu.Lock()
				accepted += count(codesOf(r), Reserved)
				mu.Unlock()
			}
		})
		s := must[State](t)(w.Inspect(w.ctx, w.cell))
		if accepted != 900 || s.Remaining[item] != 0 || s.Reserved != 900 {
			t.Errorf("accepted %d, remaining %d, records %d", accepted, s.Remaining[item], s.Reserved)
		}
	})
}

// Case 42: all keys of a cell lie in one slot of a cluster, and activities spread.
func TestCase42KeysOfACellShareASlot(t *testing.T) {
	t.Parallel()
	slots := map[uint16]bool{}
	for a := range sale.ID(200) {
		k := keysOf(Cell{Activity: a + 1, Cell: int(a % 3)})
		for _, key := range k {
			if slotOf(key) != slotOf(k[0]) {
				t.Fatalf("%s and %s lie in different slots", key, k[0])
			}
		}
		slots[slotOf(k[0])] = true
	}
	if len(slots) < 190 {
		t.Errorf("200 activities lie in %d slots", len(slots))
	}
}

// slotOf is CLUSTER KEYSLOT: CRC16/XMODEM of what stands in the first braces, modulo 16384.
func slotOf(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

// The largest batches pass, on Redis and on miniredis, whose Lua stack is small; one more is refused here.
func TestLargestBatches(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.open(t, 1000)
		batch := crowd(1, MaxReserve)
		if codes := codesOf(w.reserve(t, batch...)); count(codes, Reserved) != MaxReserve {
			t.Fatal(codes)
		}
		var claims []ClaimRequest
		var ends []Settlement
		for _, r := range crowd(1000, MaxBatch) {
			claims = append(claims, ClaimRequest{r.Token, r.User, item, 1, price, 1})
			ends = append(ends, settlement(r, sale.Closed))
		}
		answers := must[[]ClaimAnswer](t)(first(w.Claim(w.ctx, w.cell, claims)))
		if answers[MaxBatch-1].Code != Again {
			t.Fatal(answers[MaxBatch-1])
		}
		if codes := must[[]Code](t)(w.Release(w.ctx, w.cell, ends)); count(codes, Reserved) != MaxBatch {
			t.Fatal(codes)
		}
		if _, err := w.Reserve(w.ctx, w.cell, item, price, crowd(5000, MaxReserve+1)); !errors.Is(err, ErrArgument) {
			t.Errorf("a batch of %d: %v", MaxReserve+1, err)
		}
	})
}

// What scripts do not check is refused before they are called.
func TestUncleanArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	w := embedded(t)
	w.open(t, 5)
	for _, token := range []string{"", "a|b", "a,b", "!a", "a b", "ä", strings.Repeat("a", 65)} {
		_, err := w.Reserve(w.ctx, w.cell, item, price, []ReserveRequest{{sale.Token(token), 1, 1}})
		_, err2 := w.Commit(w.ctx, w.cell, []Settlement{{Outcome: sale.Outcome{Token: sale.Token(token), Outcome: sale.Paid}}})
		if !errors.Is(err, ErrArgument) || !errors.Is(err2, ErrArgument) {
			t.Errorf("token %q: %v, %v", token, err, err2)
		}
	}
	for _, r := range []ReserveRequest{{"a", 0, 1}, {"a", -1, 1}, {"a", 1, 0}, {"a", 1, -1}, {"a", 1, 101}} {
		if _, err := w.Reserve(w.ctx, w.cell, item, price, []ReserveRequest{r}); !errors.Is(err, ErrArgument) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, s := range []Settlement{settlement(wish(1), sale.Accepted), settlement(wish(1), sale.Closed)} {
		if _, err := w.Commit(w.ctx, w.cell, []Settlement{s}); !errors.Is(err, ErrArgument) {
			t.Errorf("commit of %s: %v", s.Outcome.Outcome, err)
		}
	}
}

// A code that is not in a script's list is a bug and says so.
func TestUnknownCodePanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "reserve answered 99") {
			t.Errorf("recovered %v", r)
		}
	}()
	reserveScript.code(99)
}

// Headers say what is so: KEYS, ARGV, every reply with its number, the invariant, what the caller owes; and no script
// uses what miniredis or a cluster lacks.
func TestScriptHeaders(t *testing.T) {
	t.Parallel()
	banned := regexp.MustCompile(`cmsgpack|struct\.|\bbit\.|SPUBLISH|'XADD'[^\n]*LIMIT|cjson`)
	for _, s := range scripts {
		source := string(must[[]byte](t)(files.ReadFile(s.name + ".lua")))
		lines := strings.Split(source, "\n")
		at := func(prefix string) int {
			return slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, prefix) })
		}
		if at("-- "+s.name+" ") != 0 || at("-- KEYS meta stock buyers res pending ledger") < 0 || at("-- ARGV embedded") < 0 ||
			at("-- Reply") < 0 || at("-- Invariant: ") < 0 || at("-- The caller ") < 0 {
			t.Errorf("%s.lua: its header lacks purpose, KEYS, ARGV, Reply, Invariant or The caller", s.name)
		}
		for _, c := range s.codes {
			if !regexp.MustCompile(`(?m)^-- .*(^|[ ,:])` + regexp.QuoteMeta(itoa(c)) + ` [A-Z]`).MatchString(source) {
				t.Errorf("%s.lua: its header lacks reply %d", s.name, c)
			}
		}
		if found := banned.FindString(s.source); found != "" {
			t.Errorf("%s.lua uses %s", s.name, found)
		}
	}
}

func itoa(c Code) string {
	if c < 0 {
		return "-" + string(rune('0'-c))
	}
	return string(rune('0' + c))
}
