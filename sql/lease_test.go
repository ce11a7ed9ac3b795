package sql

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// expire lets a lease end now, by the database's clock.
func expire(t testing.TB, s *Store, name string) {
	t.Helper()
	must(exec(s.db.WithContext(t.Context()), "UPDATE leases SET expires_at = "+s.now+" WHERE name = ?", name))(t)
}

func TestLeaseHasOneOwner(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		take := func(owner string) bool { return must(s.TakeLease(t.Context(), "recover/1", owner, time.Hour))(t) }
		first, renewed := take("a"), take("a")
		if !first || !renewed || take("b") {
			t.Error("want: a takes, a renews, b is refused")
		}
		expire(t, s, "recover/1")
		if !take("b") || take("a") {
			t.Error("want: b takes the expired lease, a is refused")
		}
		ok(t, s.DropLease(t.Context(), "recover/1", "a")) // not a's any more
		if take("a") {
			t.Error("a dropped b's lease")
		}
		ok(t, s.DropLease(t.Context(), "recover/1", "b"))
		if !take("a") {
			t.Error("a dropped lease is not free")
		}
	})
}

func TestLeaseRace(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		for round := range 3 { // never taken, then expired, then expired
			var mu sync.Mutex
			winners := 0
			race(t, 16, func(n int) error {
				got, err := s.TakeLease(t.Context(), "one", fmt.Sprintf("%d/%d", round, n), time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if got {
					winners++
				}
				return err
			})
			if winners != 1 {
				t.Errorf("%d winners", winners)
			}
			expire(t, s, "one")
		}
	})
}

func TestLeaseEndsByTheDatabasesClock(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		must(s.TakeLease(t.Context(), "clock", "a", time.Minute))(t)
		var left int64
		ok(t, s.db.Raw("SELECT expires_at - "+s.now+" FROM leases WHERE name = 'clock'").Scan(&left).Error)
		var skew int64
		ok(t, s.db.Raw("SELECT "+s.now+" - ?", int64(now())).Scan(&skew).Error)
		if left <= 0 || left > 60_000 || max(skew, -skew) > 5000 {
			t.Errorf("%d ms left of 60000, the database's clock is %d ms off on the same machine", left, skew)
		}
	})
}

func TestNodesAreDifferent(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		var mu sync.Mutex
		owners := map[int]int{}
		race(t, 16, func(n int) error {
			node, err := s.TakeNode(t.Context(), "same owner", time.Hour)
			mu.Lock()
			defer mu.Unlock()
			owners[node]++
			if node < 0 || node >= Nodes {
				t.Errorf("node %d", node)
			}
			return err
		})
		if len(owners) != 16 {
			t.Errorf("16 nodes taken, %d different: %v", len(owners), owners)
		}
		for node := range owners {
			if !must(s.RenewNode(t.Context(), node, "same owner", time.Hour))(t) || must(s.RenewNode(t.Context(), node, "other", time.Hour))(t) {
				t.Error("want: the owner renews, another does not")
			}
		}
	})
}

func TestNodesRunOut(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		var all []leaseRow
		for node := range Nodes {
			all = append(all, leaseRow{Name: nodeLease(node), Owner: "old", ExpiresAt: now() + 3_600_000})
		}
		ok(t, s.db.WithContext(t.Context()).Create(&all).Error)
		if _, err := s.TakeNode(t.Context(), "new", time.Hour); !errors.Is(err, ErrNoNode) {
			t.Errorf("got %v, want ErrNoNode", err)
		}
		expire(t, s, nodeLease(1023))
		if node := must(s.TakeNode(t.Context(), "new", time.Hour))(t); node != 1023 {
			t.Errorf("node %d, want the one that expired", node)
		}
		if must(s.RenewNode(t.Context(), 1023, "old", time.Hour))(t) {
			t.Error("the old owner renewed a lease that is another's")
		}
	})
}

func TestPositionsNeverGoBack(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		for _, next := range []int64{5, 9, 7} {
			ok(t, s.RecordPlaced(t.Context(), "orders", "broker-a/0", next))
		}
		race(t, 16, func(n int) error { return s.RecordPlaced(t.Context(), "orders", "broker-a/1", int64(n)) })
		ok(t, s.RecordPlaced(t.Context(), "other", "broker-a/0", 1<<60))
		got := must(s.PlacedPositions(t.Context(), "orders"))(t)
		if len(got) != 2 || got["broker-a/0"] != 9 || got["broker-a/1"] != 15 {
			t.Errorf("got %v, want 9 and 15", got)
		}
	})
}
