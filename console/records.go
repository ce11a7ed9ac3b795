package console

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
	"floodgate/sql"
)

// Transition is one line of an activity's ledger.
type Transition struct {
	ID     string            `json:"id"`
	Op     string            `json:"op"`
	At     sale.Millis       `json:"at"`
	Fields map[string]string `json:"fields"`
}

// Transitions is a page of the ledger, oldest first. Next continues it; "" at the end.
type Transitions struct {
	Transitions []Transition `json:"transitions"`
	Next        string       `json:"nextAfter,omitempty"`
}

const ledgerPage = 1000

// ledger reads a page after the id `after`; with a token only the lines of that page that name it.
func (c *Console) ledger(r *http.Request) (any, error) {
	id, err := idOf(r, "activity")
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(r, ledgerPage, ledgerPage)
	if err != nil {
		return nil, err
	}
	if _, err := c.deps.Store.Activity(r.Context(), id); err != nil {
		return nil, err
	}
	entries, err := c.deps.Ledger.Ledger(r.Context(), cellOf(id), r.URL.Query().Get("after"), limit)
	if err != nil {
		return nil, err
	}
	token := r.URL.Query().Get("token")
	out := Transitions{Transitions: []Transition{}}
	for _, e := range entries {
		if token == "" || names(e, token) {
			out.Transitions = append(out.Transitions, transition(e))
		}
	}
	if len(entries) == limit {
		out.Next = entries[limit-1].ID
	}
	return out, nil
}

func transition(e lua.Entry) Transition {
	at, _ := strconv.ParseInt(e.Fields["at"], 10, 64) // written by our scripts
	t := Transition{ID: e.ID, Op: e.Fields["op"], At: sale.Millis(at), Fields: e.Fields}
	delete(t.Fields, "op")
	delete(t.Fields, "at")
	return t
}

func names(e lua.Entry, token string) bool {
	return slices.Contains(strings.Split(e.Fields["tokens"], ","), token)
}

// Letters are dead letters, newest first.
type Letters struct {
	Letters []mq.DeadLetter `json:"letters"`
}

func (c *Console) listLetters(r *http.Request) (any, error) {
	limit, err := limitOf(r, 100, 1000)
	if err != nil {
		return nil, err
	}
	letters, err := c.deps.Letters.List(r.Context(), limit)
	if err != nil {
		return nil, err
	}
	return Letters{append([]mq.DeadLetter{}, letters...)}, nil
}

// replayLetter sends a letter to the order topic again; placing it twice changes nothing.
func (c *Console) replayLetter(r *http.Request) (any, error) {
	id := r.PathValue("letter")
	if err := c.deps.Letters.Replay(r.Context(), id); err != nil {
		return nil, err
	}
	out := Change{Changed: true, Applied: true, After: "letter " + id + " is in the queue again"}
	c.record(r, &out, sql.Operation{Action: "replay", After: out.After})
	return out, nil
}

// Operations is the operators' log, newest first.
type Operations struct {
	Operations []sql.Operation `json:"operations"`
}

func (c *Console) operations(r *http.Request) (any, error) {
	limit, err := limitOf(r, 100, 500)
	if err != nil {
		return nil, err
	}
	list, err := c.deps.Store.Operations(r.Context(), limit)
	if err != nil {
		return nil, err
	}
	return Operations{append([]sql.Operation{}, list...)}, nil
}

// Version is the console's.
type Version struct {
	Version string `json:"version"`
}

func (c *Console) version(*http.Request) (any, error) { return Version{c.deps.Version}, nil }

type tokenBody struct {
	User sale.ID `json:"userId"`
	TTL  string  `json:"ttl,omitempty"`
}

// Token is a buyer's JWT for tests.
type Token struct {
	Token     string      `json:"token"`
	User      sale.ID     `json:"userId"`
	ExpiresAt sale.Millis `json:"expiresAt"`
}

const (
	tokenTTL    = 2 * time.Hour
	maxTokenTTL = 30 * 24 * time.Hour
)

// token signs for a buyer, only where the shop is a demo: elsewhere whoever logs buyers in does that.
func (c *Console) token(r *http.Request) (any, error) {
	if c.deps.Signer == nil {
		return nil, &Fault{http.StatusForbidden, "forbidden", "only a demo signs buyers' tokens: set demo to true"}
	}
	var b tokenBody
	if err := body(r, &b); err != nil {
		return nil, err
	}
	if b.User <= 0 {
		return nil, badRequest("userId: %v", sale.ErrID)
	}
	ttl, err := time.ParseDuration(cmp.Or(b.TTL, tokenTTL.String()))
	if err != nil || ttl < time.Second || ttl > maxTokenTTL {
		return nil, badRequest(`ttl: want a duration from "1s" to "720h"`)
	}
	text, err := c.deps.Signer.Sign(b.User, ttl)
	if err != nil {
		return nil, err
	}
	return Token{text, b.User, sale.At(c.now().Add(ttl))}, nil
}
