package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// Report is what a run came to.
type Report struct {
	Name    string             `json:"bench"`
	Figures map[string]float64 `json:"figures"` // by name; the unit is the name's ending
	Goals   []Goal             `json:"goals"`
	Books   Books              `json:"books"`
	Run     Surroundings       `json:"run"`
	Notes   []string           `json:"notes,omitempty"` // what a reader of the figures must know

	mu sync.Mutex // guards Notes, to which sockets add
}

// Goal is a figure that we want to reach.
type Goal struct {
	Name string  `json:"name"` // of the figure
	Want string  `json:"want"` // such as ">= 4"
	Got  float64 `json:"got"`
	Met  bool    `json:"met"`
}

// Books tell whether what was sold adds up. Where they don't the run has failed, however fast it was.
type Books struct {
	Balanced       bool     `json:"balanced"`
	Total          int64    `json:"total"`
	Remaining      int64    `json:"remaining"`
	Occupied       int64    `json:"occupied"` // reserved, and not placed yet
	LiveOrders     int64    `json:"liveOrders"`
	Accepted       int64    `json:"accepted"`       // told to buyers
	WithoutOutcome int64    `json:"withoutOutcome"` // told accepted, and nothing since
	Faults         []string `json:"faults,omitempty"`
}

func newReport(name string) *Report {
	return &Report{Name: name, Figures: map[string]float64{}, Goals: []Goal{}, Books: Books{Balanced: true}}
}

// set notes a figure, with as many digits as a measurement bears.
func (r *Report) set(name string, v float64) { r.Figures[name] = round(v) }

func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0 // JSON has no other word, and the figure has none either
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// atLeast and below judge a figure that was set before.
func (r *Report) atLeast(name string, want float64) {
	got := r.Figures[name]
	r.Goals = append(r.Goals, Goal{name, fmt.Sprintf(">= %g", want), got, got >= want})
}

func (r *Report) atMost(name string, want float64) {
	got, measured := r.Figures[name]
	r.Goals = append(r.Goals, Goal{name, fmt.Sprintf("<= %g", want), got, measured && got <= want})
}

func (r *Report) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// fault says that the books do not balance.
func (b *Books) fault(format string, args ...any) {
	b.Balanced = false
	if len(b.Faults) < 20 {
		b.Faults = append(b.Faults, fmt.Sprintf(format, args...))
	}
}

// add counts another activity of the same run.
func (b *Books) add(o Books) {
	b.Balanced = b.Balanced && o.Balanced
	b.Total, b.Remaining, b.Occupied = b.Total+o.Total, b.Remaining+o.Remaining, b.Occupied+o.Occupied
	b.LiveOrders, b.Accepted, b.WithoutOutcome = b.LiveOrders+o.LiveOrders, b.Accepted+o.Accepted, b.WithoutOutcome+o.WithoutOutcome
	b.Faults = append(b.Faults, o.Faults...)
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report as tables for people.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "bench %s\t%s\n\n", r.Name, r.Run)
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		fmt.Fprintf(w, "%s\t%s\n", name, plain(r.Figures[name]))
	}
	for i, g := range r.Goals {
		if i == 0 {
			fmt.Fprint(w, "\ngoal\twant\tgot\t\n")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", g.Name, g.Want, plain(g.Got), map[bool]string{true: "reached", false: "missed"}[g.Met])
	}
	b := r.Books
	fmt.Fprintf(w, "\nbooks\t%s\ttotal %d = remaining %d + occupied %d + live orders %d; told accepted %d, without an outcome %d\n",
		map[bool]string{true: "balance", false: "DO NOT BALANCE"}[b.Balanced], b.Total, b.Remaining, b.Occupied, b.LiveOrders, b.Accepted, b.WithoutOutcome)
	for _, f := range b.Faults {
		fmt.Fprintf(w, "fault\t%s\n", f)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note\t%s\n", n)
	}
	return w.Flush()
}

func plain(v float64) string {
	if math.Abs(v) >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// remember adds the run to the history: one line of JSON, written whole.
func (r *Report) remember(file string) error {
	line, err := json.Marshal(struct {
		At string `json:"at"`
		*Report
	}{time.Now().UTC().Format(time.RFC3339), r})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("cannot write the history: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
