package worker

import (
	"context"
	"testing"
	"testing/synctest"

	"floodgate/mq"
)

// Whoever writes positions writes once and goes back to its own queue, though others have come meanwhile: under a rush that never
// pauses it would write for them for as long as that lasts.
func TestRecordingIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(nil, "orders")
		writes, answers := make(chan map[string]int64), make(chan error)
		r.save = func(_ context.Context, next map[string]int64) error { writes <- next; return <-answers }
		record := func(queue string) <-chan error {
			done := make(chan error, 1)
			go func() { done <- r.record(t.Context(), mq.Position{Queue: queue, Next: 1}) }()
			return done
		}
		first := record("first")
		if got := <-writes; len(got) != 1 || got["first"] != 1 {
			t.Fatalf("written: %v", got)
		}
		second, third := record("second"), record("third")
		synctest.Wait() // they wait for the next write
		answers <- nil
		synctest.Wait()
		if len(first) != 1 {
			t.Fatal("the first writes for those who came later")
		}
		if got := <-writes; len(got) != 2 || got["second"] != 1 || got["third"] != 1 {
			t.Fatalf("written: %v", got)
		}
		answers <- context.DeadlineExceeded
		for _, done := range []<-chan error{second, third} {
			if err := <-done; err != context.DeadlineExceeded {
				t.Fatalf("a write that failed was reported as %v", err)
			}
		}
	})
}
