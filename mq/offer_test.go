package mq

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func testOfferer(h Handler) *offerer {
	return &offerer{handle: h, metrics: newMetrics(nil, "test"), logger: slog.New(slog.DiscardHandler)}
}

// The pauses between offers grow from 50 ms to a second and stay there.
func TestOfferPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		o := testOfferer(func(context.Context, Batch) error {
			if at = append(at, time.Since(began)); len(at) < 8 {
				return errors.New("not yet")
			}
			return nil
		})
		if err := o.offer(t.Context(), Batch{}); err != nil {
			t.Fatal(err)
		}
		const ms = time.Millisecond
		want := []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms, 2550 * ms, 3550 * ms}
		if !slices.Equal(at, want) {
			t.Errorf("offers at %v, want %v", at, want)
		}
	})
}

// A handler that is running when the end comes has its context for the grace time, and no longer.
func TestOfferGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var lived time.Duration
		o := testOfferer(func(inHand context.Context, _ Batch) error {
			stop()
			began := time.Now()
			<-inHand.Done()
			lived = time.Since(began)
			return inHand.Err()
		})
		if err := o.offer(ctx, Batch{}); !errors.Is(err, errStopped) {
			t.Errorf("offer: %v, want errStopped", err)
		}
		if lived != grace {
			t.Errorf("the handler's context lived %v, want %v", lived, grace)
		}
	})
}

// What a handler finishes after the end is acknowledged all the same.
func TestOfferFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		o := testOfferer(func(inHand context.Context, _ Batch) error {
			stop()
			rest(inHand, grace/2)
			return inHand.Err()
		})
		if err := o.offer(ctx, Batch{}); err != nil {
			t.Errorf("offer: %v, want nil", err)
		}
	})
}
