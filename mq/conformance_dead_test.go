package mq_test

import (
	"errors"
	"testing"

	"floodgate/mq"
	"floodgate/sale"
)

func deadLetters(t *testing.T, d *driver) {
	garbage, version := `{"version":1,`, `{"version":2}`
	w := start(t, d.worker())
	d.raw(t, garbage)
	listed(w, d, 1)
	d.raw(t, version)
	letters := listed(w, d, 2)
	good := message(7)
	send(t, d, good)
	same(t, w.messages(1), []sale.Message{good})
	w.positions(d) // the positions cover what could not be read
	if letters[0].Body != version || letters[1].Body != garbage {
		t.Errorf("letters are not newest first: %+v", letters)
	}
	if letters[0].Reason == "" || letters[0].At == 0 || letters[0].ID == letters[1].ID {
		t.Errorf("a letter lacks its reason, time or id: %+v", letters)
	}
	if letters, _ := d.letters.List(t.Context(), 1); len(letters) != 1 || letters[0].Body != version {
		t.Errorf("the newest letter alone: %+v", letters)
	}
	parked(t, d)
}

// listed waits for n letters: a broker lists a message some milliseconds after it has acknowledged it.
func listed(w *worker, d *driver, n int) (letters []mq.DeadLetter) {
	w.t.Helper()
	w.until("the letters are listed", func() bool {
		got, err := d.letters.List(w.t.Context(), 10)
		if err != nil {
			w.t.Fatal(err)
		}
		letters = got
		return len(got) == n
	})
	return letters
}

func replay(t *testing.T, d *driver) {
	m := message(5)
	if err := d.letters.Add(t.Context(), m, sale.ReasonUnknown); err != nil {
		t.Fatal(err)
	}
	w := start(t, d.worker())
	letters := listed(w, d, 1)
	if letters[0].Reason != sale.ReasonUnknown || letters[0].Body != string(m.Append(nil)) {
		t.Fatalf("letters: %+v", letters)
	}
	if err := d.letters.Replay(t.Context(), letters[0].ID); err != nil {
		t.Fatal(err)
	}
	same(t, w.messages(1), []sale.Message{m})
	for _, id := range []string{"", "x", "1:", "999999", "0:999999", "floodgate:0:999999", "nowhere:0:1"} {
		if err := d.letters.Replay(t.Context(), id); !errors.Is(err, mq.ErrNoLetter) {
			t.Errorf("Replay(%q): %v, want ErrNoLetter", id, err)
		}
	}
	for _, limit := range []int{0, 1001} {
		if _, err := d.letters.List(t.Context(), limit); err == nil {
			t.Errorf("List(%d) was answered", limit)
		}
	}
}
