package model

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var byHand = flag.String("model.world", "", "a long world to walk through in TestByHand")

// TestModel walks every world of the suite and prints its states and time; where a rule is off, the sequence.
func TestModel(t *testing.T) {
	for _, trial := range append(portTrials(), grownTrials()...) {
		if trial.states > mostStates {
			continue
		}
		t.Run(trial.world.Name+without(uint64(trial.world.Without), rules), func(t *testing.T) {
			result := trial.world.check(t, mostStates)
			if trial.states != 0 && result.States != trial.states {
				t.Errorf("%d states, want %d", result.States, trial.states)
			}
			expect(t, result, trial.breaks)
		})
	}
}

// TestByHand walks one of longWorlds, named by -model.world; without it there is nothing to do.
func TestByHand(t *testing.T) {
	for _, w := range longWorlds() {
		if w.Name == *byHand {
			expect(t, w.check(t, 2*maxStates), "")
		}
	}
}

// TestEveryRule: a rule that no trial takes away is a rule that nobody would miss.
func TestEveryRule(t *testing.T) {
	var tried uint64
	for _, trial := range append(portTrials(), grownTrials()...) {
		tried |= uint64(trial.world.Without)
	}
	for i, name := range rules {
		if tried&(1<<i) == 0 {
			t.Errorf("no trial takes away %s", name)
		}
	}
	if SameRecord != 1<<(len(rules)-1) {
		t.Error("the list of rules' names is not the list of rules")
	}
}

func (w World) check(t *testing.T, most int) Result {
	started := time.Now()
	result := w.checkUpTo(most)
	took := time.Since(started)
	t.Logf("%9d states in %5.2f s, %7.0f/s", result.States, took.Seconds(), float64(result.States)/took.Seconds())
	return result
}

// expect wants the promise broken, nearest among the faults or not, or none for "".
func expect(t *testing.T, result Result, breaks string) {
	t.Helper()
	if result.GaveUp && mostStates < maxStates {
		return
	}
	found := breaks == ""
	for _, f := range result.Faults {
		text := fmt.Sprintf("%s, in %d steps:\n\t%s", f.Promise, len(f.Trace), strings.Join(f.Trace, "\n\t"))
		switch {
		case breaks == "":
			t.Error(text)
		case f.Promise == breaks:
			found = true
			t.Log(text)
		}
	}
	if !found {
		t.Errorf("nobody noticed: want %q after %d states", breaks, result.States)
	}
	if result.GaveUp && (breaks == "" || !found) {
		t.Errorf("gave up after %d states", result.States)
	}
}

// without names the rules that are off, in the order of their constants.
func without(off uint64, names []string) string {
	text := ""
	for i, name := range names {
		if off&(1<<i) != 0 {
			text += " without " + name
		}
	}
	return text
}

var rules = []string{
	"Fence", "Adopt", "Drain", "Returned", "ClaimCheck", "LiveCheck", "DropStale",
	"ClearIdentity", "BehindRecovers", "AnybodyNotices", "OnlyNewerWrites", "DrainUnderEpoch",
	"PlacedOffsets", "NeverLater", "RetryEmpty", "EndAfterGrace",
	"NewestPresent", "EveryEdgeAnswers", "DropForgetsIDs", "SkipLeavesMark", "AskAgain", "AdoptCurrent",
	"LotEpoch", "LotWritten", "ReadUnderEpoch", "MarkWithRow", "ClearAfterScript", "ClearSameRow", "ReadAgain",
	"ForgetReleased", "SameRecord",
}

var topicRules = []string{"AllWrittenFirst", "SettledByRow", "SetAside", "AsideCounts"}
