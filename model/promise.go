package model

// Promises, in the words that a Fault carries.
const (
	Oversold   = "oversold in the database"
	RowsDiffer = "sold_count and rows differ"
	OverLimit  = "a user over the limit"
	Negative   = "negative remaining"
	NeverLive  = "never live again"
	Books      = "remaining + occupied + sold differs from the total"
	NoOutcome  = "told accepted and has no outcome"
	ToldFailed = "told accepted and failed"
	NotHeard   = "told accepted and never hears the outcome"
)

// promise names what the state breaks, "" where nothing.
func (w *World) promise(s state, atRest bool) string {
	switch {
	case s.sold > s.total || s.sold < 0:
		return Oversold
	case count(s.rows, placed) != s.sold:
		return RowsDiffer
	case w.overLimit(&s):
		return OverLimit
	case s.live && s.redis.rem < 0:
		return Negative
	case !atRest:
		return ""
	case !s.live:
		return NeverLive
	case s.redis.rem+count(s.redis.res, occupied)+s.sold != s.total:
		return Books
	}
	return w.outcomes(&s)
}

func (w *World) overLimit(s *state) bool {
	for a := range w.Users {
		for b := range a {
			if w.Users[a] == w.Users[b] && s.rows[a] == placed && s.rows[b] == placed {
				return true
			}
		}
	}
	return false
}

// outcomes holds at rest. Where an order was closed its unit may have gone to somebody who then finds it taken by a
// late message, so "failed" is only a broken promise where none was closed.
func (w *World) outcomes(s *state) string {
	for t, e := range s.edges {
		if e != told && e != toldDead {
			continue
		}
		switch {
		case s.rows[t] == noRow:
			return NoOutcome
		case s.rows[t] == failed && s.closes == w.Closes:
			return ToldFailed
		case e == told && w.grown(Outcomes) && s.heard[t] != s.rows[t]:
			return NotHeard
		}
	}
	return ""
}
