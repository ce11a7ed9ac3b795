package sql

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"floodgate/sale"
)

func TestLotCountsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 0)
		must(s.RaiseEpoch(t.Context(), b.activity))(t)
		lot := Lot{Operation: "op-1", Activity: b.activity, Commodity: b.item, Units: 5}
		race(t, 8, func(int) error {
			got, err := s.AddLot(t.Context(), lot)
			if err == nil && (got.Epoch != 2 || got.Units != 5 || got.Applied) {
				err = fmt.Errorf("got %+v", got)
			}
			return err
		})
		if sum := b.sums(t, s); sum.Total != 15 {
			t.Errorf("total %d, want 15", sum.Total)
		}
		for name, c := range map[string]struct {
			change func(l *Lot)
			want   error
		}{
			"other units": {func(l *Lot) { l.Units = 6 }, ErrConflict}, "unknown item": {func(l *Lot) { l.Operation, l.Commodity = "op-2", 5 }, ErrNotFound},
			"old epoch": {func(l *Lot) { l.Operation, l.Epoch = "op-3", 1 }, ErrFenced},
		} {
			l := lot
			c.change(&l)
			if _, err := s.AddLot(t.Context(), l); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", name, err, c.want)
			}
		}
		other := newBook(t, s, 1, 0)
		if _, err := s.AddLot(t.Context(), Lot{Operation: "op-1", Activity: other.activity, Commodity: other.item, Units: 5}); !errors.Is(err, ErrConflict) {
			t.Errorf("another item under the same operation: got %v, want ErrConflict", err)
		}
		var field *sale.FieldError
		if _, err := s.AddLot(t.Context(), Lot{Operation: "op-4", Activity: b.activity, Commodity: b.item, Units: sale.MaxTotal}); !errors.As(err, &field) {
			t.Errorf("a total beyond the bound: got %v", err)
		}
	})
}

func TestLotsAreAppliedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 0)
		for _, op := range []string{"a", "b", "c"} {
			must(s.AddLot(t.Context(), Lot{Operation: op, Activity: b.activity, Commodity: b.item, Units: 1}))(t)
		}
		waiting := func() (ops []string) {
			for _, l := range must(s.LotsToApply(t.Context(), b.activity))(t) {
				ops = append(ops, l.Operation)
			}
			return ops
		}
		ok(t, s.MarkLotsApplied(t.Context(), "b", "unknown"))
		ok(t, s.MarkLotsApplied(t.Context()))
		if got := waiting(); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("got %v, want a and c", got)
		}
		epoch := must(s.RaiseEpoch(t.Context(), b.activity))(t)
		if err := s.RecordLive(t.Context(), b.activity, epoch-1, []string{"a"}); !errors.Is(err, ErrFenced) {
			t.Errorf("an old epoch went live: %v", err)
		}
		if got := waiting(); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("a fenced rebuild marked lots: %v left", got)
		}
		for range 2 {
			ok(t, s.RecordLive(t.Context(), b.activity, epoch, []string{"a"}))
		}
		if got := waiting(); !slices.Equal(got, []string{"c"}) {
			t.Errorf("got %v, want c", got)
		}
		if got := must(s.Activity(t.Context(), b.activity))(t); got.LiveEpoch != epoch || got.States[0].LiveEpoch != epoch {
			t.Errorf("live epoch %d, want %d", got.LiveEpoch, epoch)
		}
	})
}

func TestEpochsAreRaisedOneByOne(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 10, 0)
		var mu sync.Mutex
		var epochs []int64
		race(t, 16, func(int) error {
			epoch, err := s.RaiseEpoch(t.Context(), b.activity)
			mu.Lock()
			defer mu.Unlock()
			epochs = append(epochs, epoch)
			return err
		})
		slices.Sort(epochs)
		for i, e := range epochs {
			if e != int64(i)+2 {
				t.Fatalf("epochs %v, want 2 to 17", epochs)
			}
		}
		for epoch, want := range map[int64]bool{16: false, 17: true, 18: false} {
			if got := must(s.HoldsEpoch(t.Context(), b.activity, epoch))(t); got != want {
				t.Errorf("HoldsEpoch(%d) = %v", epoch, got)
			}
		}
		if _, err := s.RaiseEpoch(t.Context(), 5); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown: got %v, want ErrNotFound", err)
		}
		if _, err := s.HoldsEpoch(t.Context(), 5, 1); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown: got %v, want ErrNotFound", err)
		}
	})
}
