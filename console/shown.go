package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// Shown is an activity as operators see it: what the database wants and what Redis has.
type Shown struct {
	ID           sale.ID     `json:"id"`
	Title        string      `json:"title"`
	Status       sale.Status `json:"status"`
	StartsAt     sale.Millis `json:"startsAt"`
	EndsAt       sale.Millis `json:"endsAt"`
	Now          sale.Millis `json:"now"`
	PerUserLimit int         `json:"perUserLimit"`
	PayWindow    string      `json:"payWindow"`
	Epoch        int64       `json:"epoch"`
	Items        []ShownItem `json:"items"`
	Redis        ShownRedis  `json:"redis"`
}

// ShownItem is an item; Remaining is nil where Redis does not hold it.
type ShownItem struct {
	Commodity     sale.ID    `json:"commodityId"`
	Title         string     `json:"title"`
	Price         sale.Cents `json:"price"`
	Total         int64      `json:"total"`
	Sold          int64      `json:"sold"`
	Remaining     *int64     `json:"remaining"`
	FallbackQuota int64      `json:"fallbackQuota,omitempty"`
	FallbackLeft  int64      `json:"fallbackLeft,omitempty"`
}

// ShownRedis is the activity's state in Redis; Error says why it is not known.
type ShownRedis struct {
	State        string      `json:"state"` // "not open", "not proven", "recovering", "open" or "unknown"
	Status       sale.Status `json:"status,omitempty"`
	Epoch        int64       `json:"epoch,omitempty"`
	Version      int64       `json:"version,omitempty"`
	Reservations int64       `json:"reservations"`
	Pending      int64       `json:"pending"` // batches that somebody looks at again
	Error        string      `json:"error,omitempty"`
}

// show puts both sides beside each other. Redis being away is told, and is no error: the database is what is wanted.
func (c *Console) show(ctx context.Context, a sql.Activity) Shown {
	out := Shown{ID: a.ID, Title: a.Title, Status: a.Status, StartsAt: a.StartsAt, EndsAt: a.EndsAt, Now: sale.At(c.now()),
		PerUserLimit: a.PerUserLimit, PayWindow: a.PayWindow.String(), Epoch: a.Epoch}
	s, err := c.deps.Ledger.Inspect(ctx, cellOf(a.ID))
	out.Redis = shownRedis(s, err)
	for i, item := range a.Items {
		st := a.States[i]
		shown := ShownItem{Commodity: item.Commodity, Title: item.Title, Price: item.Price, Total: item.Total, Sold: st.Sold,
			FallbackQuota: item.FallbackQuota, FallbackLeft: st.FallbackLeft}
		if n, ok := s.Remaining[item.Commodity]; ok {
			shown.Remaining = &n
		}
		out.Items = append(out.Items, shown)
	}
	return out
}

func shownRedis(s lua.State, err error) ShownRedis {
	r := ShownRedis{State: "open", Status: s.Status, Epoch: s.Epoch, Version: s.Version, Reservations: s.Reserved, Pending: s.Pending}
	switch {
	case err != nil:
		r.State, r.Error = "unknown", err.Error()
	case !s.Opened:
		r.State = "not open"
	case !s.Proven:
		r.State = "not proven"
	case s.Recovering:
		r.State = "recovering"
	}
	return r
}

func (c *Console) showActivity(r *http.Request) (any, error) {
	id, err := idOf(r, "activity")
	if err != nil {
		return nil, err
	}
	a, err := c.deps.Store.Activity(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return c.show(r.Context(), a), nil
}

// List is a page of activities, newest first; Before of the next page is in Next, 0 at the end.
type List struct {
	Activities []Shown `json:"activities"`
	Next       sale.ID `json:"nextBefore,omitzero"`
}

const listPage = 50

func (c *Console) listActivities(r *http.Request) (any, error) {
	var before sale.ID
	if text := r.URL.Query().Get("before"); text != "" {
		id, err := sale.ParseID(text)
		if err != nil {
			return nil, badRequest("before: %v", err)
		}
		before = id
	}
	limit, err := limitOf(r, listPage, listPage)
	if err != nil {
		return nil, err
	}
	activities, err := c.deps.Store.Activities(r.Context(), before, limit)
	if err != nil {
		return nil, err
	}
	out := List{Activities: []Shown{}}
	for _, a := range activities {
		out.Activities = append(out.Activities, c.show(r.Context(), a))
	}
	if len(activities) == limit {
		out.Next = activities[limit-1].ID
	}
	return out, nil
}

// limitOf reads the query's limit.
func limitOf(r *http.Request, fallback, most int) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, badRequest("limit: want 1 to %d", most)
	}
	return n, nil
}

// brief is an activity in one line of the operators' log.
func brief(a sql.Activity) string {
	return fmt.Sprintf("%s, %s to %s", a.Status, a.StartsAt.Time().Format("2006-01-02T15:04:05Z"), a.EndsAt.Time().Format("2006-01-02T15:04:05Z"))
}
