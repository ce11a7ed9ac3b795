package sql

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"floodgate/sale"
)

func TestActivityIsKept(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		a := sale.Activity{ID: 1<<63 - 1, Title: "双十一 🎉 Ünïcödé", StartsAt: 1794326400000, EndsAt: 1794330000000, PerUserLimit: 100,
			PayWindow: 72 * time.Hour, Captcha: true, Items: []sale.Item{
				{Commodity: 1<<63 - 2, Title: "second by id, first by place", Price: sale.MaxPrice, Total: sale.MaxTotal, FallbackQuota: 3},
				{Commodity: 1, Title: "b", Price: 0, Total: 0}}}
		id := must(s.CreateActivity(t.Context(), a))(t)
		got := must(s.Activity(t.Context(), id))(t)
		a.Status = sale.Created
		if !reflect.DeepEqual(got.Activity, a) {
			t.Errorf("got %+v\nwant %+v", got.Activity, a)
		}
		states := []ItemState{{Commodity: 1<<63 - 2, Total: sale.MaxTotal, FallbackLeft: 3, Epoch: 1}, {Commodity: 1, Epoch: 1}}
		if !reflect.DeepEqual(got.States, states) || got.Epoch != 1 || got.LiveEpoch != 0 {
			t.Errorf("got %+v, epoch %d, live epoch %d", got.States, got.Epoch, got.LiveEpoch)
		}
		if _, err := s.CreateActivity(t.Context(), a); !errors.Is(err, ErrExists) {
			t.Errorf("the same id again: got %v, want ErrExists", err)
		}
		if _, err := s.Activity(t.Context(), 5); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown: got %v, want ErrNotFound", err)
		}
		a.Items = nil
		if _, err := s.CreateActivity(t.Context(), a); err == nil {
			t.Error("an activity without items was taken")
		}
	})
}

func TestActivityIDsIncrease(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		var last sale.ID
		for range 20 { // more than one in a millisecond
			b := newBook(t, s, 1, 0)
			if b.activity <= last {
				t.Fatalf("id %s after %s", b.activity, last)
			}
			last = b.activity
		}
		var mu sync.Mutex
		seen := map[sale.ID]bool{}
		race(t, 16, func(int) error {
			id, err := s.CreateActivity(t.Context(), sample(1, 0))
			mu.Lock()
			defer mu.Unlock()
			seen[id] = true
			return err
		})
		if len(seen) != 16 {
			t.Errorf("%d different ids of 16", len(seen))
		}
	})
}

func TestActivitiesAreListedByPage(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		var ids []sale.ID
		for range 5 {
			ids = append(ids, newBook(t, s, 1, 0).activity)
		}
		must(s.SetStatus(t.Context(), ids[3], sale.Live))(t)
		page := func(before sale.ID, limit int, statuses ...sale.Status) []sale.ID {
			var got []sale.ID
			for _, a := range must(s.Activities(t.Context(), before, limit, statuses...))(t) {
				if len(a.Items) != 1 || len(a.States) != 1 {
					t.Errorf("activity %s came without its item", a.ID)
				}
				got = append(got, a.ID)
			}
			return got
		}
		for name, c := range map[string]struct{ got, want []sale.ID }{
			"first": {page(0, 2), []sale.ID{ids[4], ids[3]}}, "second": {page(ids[3], 2), []sale.ID{ids[2], ids[1]}},
			"last": {page(ids[1], 2), []sale.ID{ids[0]}}, "behind": {page(ids[0], 2), nil},
			"live": {page(0, 9, sale.Live, sale.Paused), []sale.ID{ids[3]}},
		} {
			if !reflect.DeepEqual(c.got, c.want) {
				t.Errorf("%s page: got %v, want %v", name, c.got, c.want)
			}
		}
	})
}

func TestStatusMoves(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 1, 0)
		for _, step := range []struct {
			to, before sale.Status
			err        error
		}{
			{sale.Paused, sale.Created, ErrConflict},
			{sale.Live, sale.Created, nil}, {sale.Live, sale.Live, nil}, {sale.Created, sale.Live, ErrConflict},
			{sale.Paused, sale.Live, nil}, {sale.Live, sale.Paused, nil}, {sale.Ended, sale.Live, nil},
			{sale.Ended, sale.Ended, nil}, {sale.Live, sale.Ended, ErrConflict}, {"sold", sale.Ended, ErrConflict},
		} {
			before, err := s.SetStatus(t.Context(), b.activity, step.to)
			if before != step.before || !errors.Is(err, step.err) {
				t.Errorf("%s -> %s: got %s, %v", step.before, step.to, before, err)
			}
		}
		early := newBook(t, s, 1, 0)
		if before, err := s.SetStatus(t.Context(), early.activity, sale.Ended); before != sale.Created || err != nil {
			t.Errorf("created -> ended: got %s, %v", before, err)
		}
		if _, err := s.SetStatus(t.Context(), 5, sale.Live); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown: got %v, want ErrNotFound", err)
		}
		if err := s.SetWindow(t.Context(), b.activity, 1, 2); !errors.Is(err, ErrConflict) {
			t.Errorf("window of an ended activity: got %v, want ErrConflict", err)
		}
	})
}

func TestWindowAndPriceMove(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		b := newBook(t, s, 1, 0)
		for range 2 { // the second changes nothing and is no error
			ok(t, s.SetWindow(t.Context(), b.activity, 3000, 4000))
			ok(t, s.SetPrice(t.Context(), b.activity, b.item, 1))
		}
		got := must(s.Activity(t.Context(), b.activity))(t)
		if got.StartsAt != 3000 || got.EndsAt != 4000 || got.Items[0].Price != 1 {
			t.Errorf("got %+v", got.Activity)
		}
		var field *sale.FieldError
		if err := s.SetWindow(t.Context(), b.activity, 4000, 4000); !errors.As(err, &field) {
			t.Errorf("an end at the start: got %v", err)
		}
		if err := s.SetPrice(t.Context(), b.activity, b.item, -1); !errors.As(err, &field) {
			t.Errorf("a negative price: got %v", err)
		}
		if err := s.SetPrice(t.Context(), b.activity, 5, 1); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown item: got %v, want ErrNotFound", err)
		}
	})
}

func TestOperationsAreLogged(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		first := Operation{At: 5, Who: "ann", Action: "pause", Activity: 1 << 60, Before: "live", After: "paused"}
		ok(t, s.LogOperation(t.Context(), first))
		ok(t, s.LogOperation(t.Context(), Operation{Who: "bob", Action: "resume"}))
		got := must(s.Operations(t.Context(), 10))(t)
		if len(got) != 2 || got[0].Who != "bob" || got[0].At == 0 || got[1] != first {
			t.Errorf("got %+v", got)
		}
		if got := must(s.Operations(t.Context(), 1))(t); len(got) != 1 {
			t.Errorf("%d lines, want 1", len(got))
		}
	})
}
