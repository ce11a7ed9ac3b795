package sql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"

	"floodgate/sale"
)

// Nodes is how many node ids there are: 10 bits of an order number.
const Nodes = 1024

// Which lease may be taken besides one that nobody has.
const (
	expiredOnly  = "expires_at <= " // + the database's clock
	expiredOrOwn = "owner = ? OR expires_at <= "
)

// TakeLease gives the named lease to owner for ttl by the database's clock. See [API]. The owner counts ttl from before the call,
// by its monotonic clock: then it stops before the lease does.
func (s *Store) TakeLease(ctx context.Context, name, owner string, ttl time.Duration) (bool, error) {
	got, err := s.take(ctx, leaseRow{Name: name, Owner: owner}, ttl, expiredOrOwn)
	if err != nil {
		return false, fmt.Errorf("cannot take lease %s: %w", name, err)
	}
	return got, nil
}

func (s *Store) take(ctx context.Context, l leaseRow, ttl time.Duration, free string) (bool, error) {
	args := []any{l.Owner, ttl.Milliseconds(), l.Name}
	if free == expiredOrOwn {
		args = append(args, l.Owner)
	}
	var got bool
	err := s.inTx(ctx, func(tx *gorm.DB) error {
		n, err := exec(tx, "UPDATE leases SET owner = ?, expires_at = "+s.now+" + ? WHERE name = ? AND ("+free+s.now+")", args...)
		if got = n == 1; err != nil || got {
			return err
		}
		n, err = exec(tx, "INSERT INTO leases (name, owner, expires_at) VALUES (?, ?, "+s.now+" + ?)", l.Name, l.Owner, ttl.Milliseconds())
		got = n == 1
		return err
	})
	if isDuplicate(err) {
		return false, nil // somebody has it
	}
	return got, err
}

// DropLease gives the lease back; not the owner's any more is no error.
func (s *Store) DropLease(ctx context.Context, name, owner string) error {
	err := retry(ctx, func() error {
		_, err := exec(s.db.WithContext(ctx), "DELETE FROM leases WHERE name = ? AND owner = ?", name, owner)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot drop lease %s: %w", name, err)
	}
	return nil
}

func nodeLease(node int) string { return fmt.Sprintf("node/%d", node) }

// TakeNode leases a node id that nobody holds, preferring ids never used; an owner may hold several. [ErrNoNode] where all are held.
func (s *Store) TakeNode(ctx context.Context, owner string, ttl time.Duration) (int, error) {
	nodes, err := s.freeNodes(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot list node ids: %w", err)
	}
	for _, node := range nodes {
		got, err := s.take(ctx, leaseRow{Name: nodeLease(node), Owner: owner}, ttl, expiredOnly)
		if err != nil {
			return 0, fmt.Errorf("cannot take node id %d: %w", node, err)
		}
		if got {
			return node, nil
		}
	}
	return 0, fmt.Errorf("cannot take a node id for %s: %w", owner, ErrNoNode)
}

// freeNodes lists the nodes that can be taken: the unused ones in random order, since many workers start at once, then those
// that expired, longest ago first.
func (s *Store) freeNodes(ctx context.Context) ([]int, error) {
	var at sale.Millis
	var leases []leaseRow
	db := s.db.WithContext(ctx)
	if err := errors.Join(
		db.Raw("SELECT "+s.now).Scan(&at).Error,
		db.Where("name LIKE 'node/%'").Order("expires_at").Find(&leases).Error); err != nil {
		return nil, err
	}
	used := map[string]bool{}
	var expired []int
	for _, l := range leases {
		used[l.Name] = true
		node := 0
		if n, err := fmt.Sscanf(l.Name, "node/%d", &node); n == 1 && err == nil && l.ExpiresAt <= at {
			expired = append(expired, node)
		}
	}
	var free []int
	for _, node := range rand.Perm(Nodes) {
		if !used[nodeLease(node)] {
			free = append(free, node)
		}
	}
	return append(free, expired...), nil
}

// RenewNode extends the node's lease; false says that it is somebody else's now and that no number may be minted with it.
func (s *Store) RenewNode(ctx context.Context, node int, owner string, ttl time.Duration) (bool, error) {
	var n int64
	err := retry(ctx, func() (err error) {
		n, err = exec(s.db.WithContext(ctx), "UPDATE leases SET expires_at = "+s.now+" + ? WHERE name = ? AND owner = ?", ttl.Milliseconds(), nodeLease(node), owner)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot renew node id %d: %w", node, err)
	}
	return n == 1, nil
}
