package lua

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/sale"
)

// listener hears what is published about one activity and one user's outcomes.
type listener struct {
	t   *testing.T
	sub *redis.PubSub
	w   *world
}

func (w *world) listen(t *testing.T) *listener {
	l := &listener{t, w.rdb.Subscribe(w.ctx, StockChannel, OutcomeChannel), w}
	t.Cleanup(func() { l.sub.Close() })
	for range 2 { // both subscriptions are confirmed before anything is published
		must[any](t)(l.sub.ReceiveTimeout(w.ctx, 10*time.Second))
	}
	return l
}

// stock is the next change of the activity; outcomes of others are passed over.
func (l *listener) stock() sale.StockChange {
	l.t.Helper()
	for {
		m := must[any](l.t)(l.sub.ReceiveTimeout(l.w.ctx, 10*time.Second)).(*redis.Message)
		var s sale.StockChange
		if m.Channel == StockChannel && json.Unmarshal([]byte(m.Payload), &s) == nil && s.Activity == l.w.cell.Activity {
			return s
		}
	}
}

// outcomes is the next published batch in which a token of the list stands.
func (l *listener) outcomes(token sale.Token) []sale.Outcome {
	l.t.Helper()
	for {
		m := must[any](l.t)(l.sub.ReceiveTimeout(l.w.ctx, 10*time.Second)).(*redis.Message)
		var list []sale.Outcome
		if m.Channel == OutcomeChannel {
			if err := json.Unmarshal([]byte(m.Payload), &list); err != nil {
				l.t.Fatalf("outcomes %s: %v", m.Payload, err)
			}
			if list[0].Token == token {
				return list
			}
		}
	}
}

// Stock is published where it reaches 0, leaves 0, is added to, and when a recovery ends; versions rise under an epoch.
func TestStockChangesArePublished(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.open(t, 2)
		l := w.listen(t)
		expect := func(epoch, version, remaining int64) {
			t.Helper()
			want := sale.StockChange{Activity: w.cell.Activity, Commodity: item, Epoch: epoch, Version: version, Remaining: remaining}
			if got := l.stock(); got != want {
				t.Fatalf("published %+v, want %+v", got, want)
			}
		}
		w.reserve(t, wish(1)) // 1 remains: no news
		w.reserve(t, wish(2))
		expect(1, 1, 0)
		must[[]Code](t)(w.Release(w.ctx, w.cell, []Settlement{settlement(wish(1), sale.Closed), settlement(wish(2), sale.Closed)}))
		expect(1, 2, 2)
		must[Code](t)(w.Restock(w.ctx, w.cell, item, sale.MaxTotal-2, 1, "lot-1"))
		expect(1, 3, sale.MaxTotal)
		must[Code](t)(w.RebuildBegin(w.ctx, w.cell, 2))
		must[Code](t)(w.RebuildEnd(w.ctx, w.sale, 2, map[sale.ID]int64{item: 1}))
		must[Code](t)(w.RebuildLive(w.ctx, w.cell, 2))
		expect(2, 5, 1)
		must[[]ClaimAnswer](t)(first(w.Claim(w.ctx, w.cell, []ClaimRequest{{wish(3).Token, wish(3).User, item, 1, price, 1}})))
		expect(2, 6, 0)
	})
}

func first[A, B any](a A, _ B, err error) (A, error) { return a, err }

// Every outcome of a batch is published, in one message, whatever its code: rows are the truth, a buyer waits. Silent
// are only the unproven, which come again, and a pending_payment that is older than the payment.
func TestOutcomesArePublished(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.open(t, 5)
		a, b, gone := unique(1), unique(2), unique(3)
		w.reserve(t, a, b)
		l := w.listen(t)
		settle := func(f func(batch ...Settlement) ([]Code, error), want int, batch ...Settlement) {
			t.Helper()
			must[[]Code](t)(f(batch...))
			list := l.outcomes(batch[0].Outcome.Token)
			if len(list) != want || list[0] != batch[0].Outcome || list[want-1] != batch[want-1].Outcome {
				t.Fatalf("published %+v, want %d of %+v", list, want, batch)
			}
		}
		commit := func(batch ...Settlement) ([]Code, error) { return w.Commit(w.ctx, w.cell, batch) }
		release := func(batch ...Settlement) ([]Code, error) { return w.Release(w.ctx, w.cell, batch) }
		settle(commit, 3, settlement(a, sale.PendingPayment), settlement(b, sale.PendingPayment), settlement(gone, sale.Paid))
		settle(commit, 1, settlement(a, sale.Paid), settlement(a, sale.PendingPayment))
		settle(release, 2, settlement(b, sale.Closed), settlement(gone, sale.Failed))
		settle(release, 1, settlement(b, sale.Closed))
		must[[]Code](t)(commit(settlement(a, sale.PendingPayment)))
		if err := w.Unprove(w.ctx, w.cell); err != nil {
			t.Fatal(err)
		}
		must[[]Code](t)(commit(settlement(a, sale.Paid)))
		must[[]Code](t)(release(settlement(b, sale.Closed)))
		if err := w.Drop(w.ctx, w.cell); err != nil {
			t.Fatal(err)
		}
		settle(release, 1, settlement(b, sale.Cancelled)) // unopened; and nothing was published in between:
		settle(commit, 1, settlement(b, sale.Paid))
	})
}

// unique is a wish under a token that no other test has.
func unique(n int) ReserveRequest {
	r := wish(n)
	r.Token = sale.NewTokenKey([]byte("test")).Sign(sale.TokenClaims{User: r.User, Activity: 1, Nonce: randomNonce()})
	return r
}
