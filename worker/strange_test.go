package worker

import (
	"testing"

	"floodgate/sale"
)

// A message of an item that its activity does not have is a dead letter. It used to look like a stock that is not proven: it lay
// on the shelf for ever with all that were placed beside it, and no drain of a recovery ended any more.
func TestMessageOfAnUnknownItemIsADeadLetter(t *testing.T) {
	t.Parallel()
	worlds(t, func(w *world) {
		a := w.activity(3, 1)
		w.start(1)
		w.opened(a)
		good := w.reserve(a, 1)
		strange := message(a, 2, w.token(2, a.ID))
		strange.Commodity = commodity + 1
		w.send(strange, good)
		if o := w.order(good.Token); o.State != sale.StatePending {
			w.t.Fatalf("order %s", o.State.Outcome())
		}
		w.eventually("the strange message is a dead letter", func() bool {
			letters, err := w.queue.List(t.Context(), 10)
			return err == nil && len(letters) == 1
		})
		w.restart(a)
		w.opened(a)
		w.balanced(a)
	})
}
