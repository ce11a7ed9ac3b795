package sql

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"floodgate/deploy/stacktest"
	"floodgate/sale"
)

// onBoth runs a test on a fresh database of each dialect.
func onBoth(t *testing.T, f func(t *testing.T, s *Store)) {
	t.Parallel()
	for _, driver := range []string{SQLite, MySQL} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			f(t, fresh(t, driver))
		})
	}
}

// fresh opens an empty, migrated database that goes when the test ends.
func fresh(t testing.TB, driver string) *Store {
	t.Helper()
	s := bare(t, driver)
	if _, err := s.Migrate(t.Context(), "up"); err != nil {
		t.Fatal(err)
	}
	return s
}

func bare(t testing.TB, driver string) *Store {
	t.Helper()
	dsn := filepath.Join(t.TempDir(), "floodgate.db")
	if driver == MySQL {
		dsn = stacktest.MySQL(t)
	}
	return open(t, Config{Driver: driver, DSN: dsn, MaxOpen: 20})
}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// must ends the test on an error; what is returned otherwise is the value.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// book makes rows for one item of one activity.
type book struct {
	key      *sale.TokenKey
	activity sale.ID
	item     sale.ID
}

var numbers atomic.Int64 // order numbers and nonces of all tests, above 2^53

func nextNo() sale.ID { return sale.ID(1<<60 + numbers.Add(1)) }

// newBook creates an activity with one item of the given stock.
func newBook(t testing.TB, s *Store, total, fallback int64) *book {
	t.Helper()
	b := &book{key: sale.NewTokenKey([]byte("test")), item: sampleItem}
	b.activity = must(s.CreateActivity(t.Context(), sample(total, fallback)))(t)
	return b
}

const sampleItem sale.ID = 1<<62 + 7

func sample(total, fallback int64) sale.Activity {
	return sale.Activity{Title: "秒杀 🎉", StartsAt: 1000, EndsAt: 2000, PerUserLimit: 5, PayWindow: 15 * time.Minute,
		Items: []sale.Item{{Commodity: sampleItem, Title: "茶 🍵", Price: 9900, Total: total, FallbackQuota: fallback}}}
}

// order is a pending order of the user with these slots.
func (b *book) order(user sale.ID, slots ...int) sale.Order {
	no := nextNo()
	token := b.key.Sign(sale.TokenClaims{User: user, Activity: b.activity, Nonce: uint64(no), Expires: 5000})
	return sale.Order{No: no, Token: token, User: user, Activity: b.activity, Commodity: b.item, Title: "茶 🍵", Quantity: len(slots),
		Price: 9900, Slots: slots, CreatedAt: 1500, UpdatedAt: 1500, PayBy: 901_500}
}

// failed is the tombstone for an order.
func failed(o sale.Order, reason string) sale.Order {
	o.No, o.State, o.Slots, o.Reason = nextNo(), sale.StateFailed, nil, reason
	return o
}

func (b *book) place(t testing.TB, s *Store, epoch int64, rows ...sale.Order) Placed {
	t.Helper()
	return must(s.Place(t.Context(), b.activity, b.item, epoch, rows))(t)
}

// sums are the item's, checked: the counter, the live rows and the slots say the same, and nothing is oversold.
func (b *book) sums(t testing.TB, s *Store) ItemSums {
	t.Helper()
	sum := must(s.Sums(context.WithoutCancel(t.Context()), b.activity))(t)[0]
	if sum.Sold != sum.LiveUnits || sum.Sold != sum.SlotRows || sum.Sold > sum.Total-sum.FallbackLeft {
		t.Fatalf("the books are wrong: %+v", sum)
	}
	return sum
}

func nos(orders []sale.Order) []sale.ID {
	out := []sale.ID{}
	for _, o := range orders {
		out = append(out, o.No)
	}
	return out
}

// want compares the numbers in the five lists of Placed, each in any order.
func want(t testing.TB, got Placed, inserted, existing, noSlot, noStock, sameNo []sale.Order) {
	t.Helper()
	for _, c := range []struct {
		name      string
		got, want []sale.Order
	}{{"Inserted", got.Inserted, inserted}, {"Existing", got.Existing, existing}, {"NoSlot", got.NoSlot, noSlot},
		{"NoStock", got.NoStock, noStock}, {"SameNo", got.SameNo, sameNo}} {
		g, w := nos(c.got), nos(c.want)
		slices.SortFunc(g, cmp.Compare)
		slices.SortFunc(w, cmp.Compare)
		if !slices.Equal(g, w) {
			t.Errorf("%s: got %v, want %v", c.name, g, w)
		}
	}
}

// race runs f in n goroutines that start together, and fails the test on each error.
func race(t testing.TB, n int, f func(n int) error) {
	t.Helper()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			if err := f(i); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
