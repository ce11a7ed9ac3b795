package edge

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/dgraph-io/ristretto/v2"

	"floodgate/sale"
)

const (
	soldOutTTL  = 2 * time.Second        // a message that was missed heals within this
	soldOutRest = 500 * time.Millisecond // between two Sets of one key: a second Set before the first is applied would be lost
	soldOutRoom = 1 << 17                // maxActivities x MaxItems, one each

	verifiedTTL  = time.Minute // a key that was changed, or a user that was shut out, is noticed within this
	verifiedRoom = 1 << 16     // buyers remembered, some 10 MB; one more only costs a signature check

	ackedTTL  = 10 * time.Minute // as long as a request token lives by default
	ackedRoom = 1 << 16
)

func newCache[V any](room int64, hash func(uint64) (uint64, uint64)) (*ristretto.Cache[uint64, V], error) {
	c, err := ristretto.NewCache(&ristretto.Config[uint64, V]{
		NumCounters: 10 * room, MaxCost: room, BufferItems: 64, IgnoreInternalCost: true, KeyToHash: hash,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a cache: %w", err)
	}
	return c, nil
}

// soldOut remembers which items are sold out. Presence is the value: Del clears, and a key is never Set while an older
// Set of it may still be on its way. It is a hint: a miss falls through to Redis, a hit may be wrong for the TTL.
type soldOut struct {
	cache *ristretto.Cache[uint64, struct{}]
}

func newSoldOut() (*soldOut, error) {
	c, err := newCache[struct{}](soldOutRoom, func(k uint64) (uint64, uint64) { return k, 0 })
	return &soldOut{cache: c}, err
}

func (s *soldOut) has(t *till) bool {
	_, ok := s.cache.Get(t.number)
	return ok
}

// learn takes news of an item's stock from a reply, a message or a read. Older news than the newest known is ignored, and
// only nothing left is sold out: who asks for more than is left must not sell the item out for others.
func (s *soldOut) learn(t *till, epoch, version, remaining int64) {
	t.news.mu.Lock()
	defer t.news.mu.Unlock()
	if epoch < t.news.epoch || (epoch == t.news.epoch && version < t.news.version) {
		return
	}
	newer := epoch != t.news.epoch || version != t.news.version
	t.news.epoch, t.news.version = epoch, version
	if remaining != 0 {
		if newer || !t.news.setAt.IsZero() {
			s.cache.Del(t.number)
		}
		t.news.setAt = time.Time{}
		return
	}
	if time.Since(t.news.setAt) < soldOutRest {
		return
	}
	t.news.setAt = time.Now()
	s.cache.SetWithTTL(t.number, struct{}{}, 1, soldOutTTL)
}

func (s *soldOut) close() { s.cache.Close() }

// hash128 is half of a SHA-256: nobody finds two texts with one.
func hash128(text []byte) (uint64, uint64) {
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])
}

// verified remembers buyers whose token was checked: no second signature check within a minute. The key is 128 bits of
// the token's hash, and its own expiry is looked at on every use.
type verified struct {
	cache *ristretto.Cache[[]byte, buyer]
	check Verifier
}

type buyer struct {
	user    sale.ID
	expires sale.Millis // 0: never
}

func newVerified(check Verifier) (*verified, error) {
	c, err := ristretto.NewCache(&ristretto.Config[[]byte, buyer]{
		NumCounters: 10 * verifiedRoom, MaxCost: verifiedRoom, BufferItems: 64, IgnoreInternalCost: true, KeyToHash: hash128,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a cache: %w", err)
	}
	return &verified{cache: c, check: check}, nil
}

// user reads a buyer's token; the bytes are the request's and are copied where they are kept.
func (v *verified) user(token []byte) (sale.ID, bool) {
	if b, ok := v.cache.Get(token); ok && (b.expires == 0 || sale.At(time.Now()) < b.expires) {
		return b.user, true
	}
	u, err := v.check.Verify(string(token))
	if err != nil {
		return 0, false
	}
	v.cache.SetWithTTL(token, buyer{u.ID, u.Expires}, 1, verifiedTTL)
	return u.ID, true
}

func (v *verified) close() { v.cache.Close() }

// acked remembers request tokens whose message the queue has acknowledged, so that a repeated click makes no second
// message. Forgetting one is harmless: placing is idempotent.
type acked struct {
	cache *ristretto.Cache[string, struct{}]
}

func newAcked() (*acked, error) {
	c, err := ristretto.NewCache(&ristretto.Config[string, struct{}]{
		NumCounters: 10 * ackedRoom, MaxCost: ackedRoom, BufferItems: 64, IgnoreInternalCost: true,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a cache: %w", err)
	}
	return &acked{cache: c}, nil
}

func (a *acked) has(token sale.Token) bool {
	_, ok := a.cache.Get(string(token))
	return ok
}

func (a *acked) add(token sale.Token) { a.cache.SetWithTTL(string(token), struct{}{}, 1, ackedTTL) }

func (a *acked) close() { a.cache.Close() }
