package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// Change tells what an operator's action did. All are safe to repeat.
type Change struct {
	Changed  bool   `json:"changed"`           // false: it was so already
	Applied  bool   `json:"applied"`           // Redis shows it
	Note     string `json:"note,omitempty"`    // what else must be known
	Before   string `json:"before,omitempty"`  // in one line
	After    string `json:"after,omitempty"`   // in one line
	Activity Shown  `json:"activity,omitzero"` // as it is now
}

// changer changes the database first, then Redis where it must hold at once.
type changer func(ctx context.Context, a sql.Activity, r *http.Request) error

// change serves one action on an activity: read, change, read again, write it down, wait until Redis shows it.
func (c *Console) change(name string, do changer) action {
	return func(r *http.Request) (any, error) {
		id, err := idOf(r, "activity")
		if err != nil {
			return nil, err
		}
		ctx := r.Context()
		before, err := c.deps.Store.Activity(ctx, id)
		if err != nil {
			return nil, err
		}
		failed := do(ctx, before, r)
		after, err := c.deps.Store.Activity(context.WithoutCancel(ctx), id)
		if err = cmp.Or(failed, err); err != nil && brief(after) == brief(before) {
			return nil, err
		}
		out := Change{Changed: brief(before) != brief(after), Before: brief(before), After: brief(after)}
		c.record(r, &out, sql.Operation{Action: name, Activity: id, Before: out.Before, After: out.After})
		if err != nil { // half of it was done, and is in the log
			return nil, err
		}
		c.await(ctx, after, &out)
		out.Activity = c.show(ctx, after)
		return out, nil
	}
}

// record writes the operators' log. The action is done, so that a log which cannot be written is told and not a failure.
func (c *Console) record(r *http.Request, out *Change, o sql.Operation) {
	o.Who = who(r)
	if err := c.deps.Store.LogOperation(context.WithoutCancel(r.Context()), o); err != nil {
		out.Note = "done, but not in the operators' log: " + err.Error()
		c.deps.Log.Error("an operator's action is not in the log", "action", o.Action, "who", o.Who, "activity", o.Activity, "error", err)
	}
}

// await describes the activity to Redis and waits until Redis shows it, so that an operator who reads "applied" can rely on it. Workers
// do the same within half a second; the console does it too, so that changes work while none is there.
func (c *Console) await(ctx context.Context, a sql.Activity, out *Change) {
	if a.Status == sale.Created || a.Status == sale.Ended && a.LiveEpoch == 0 {
		out.Applied = true // nothing of it is in Redis
		return
	}
	if err := c.deps.Ledger.Describe(ctx, a.Activity); err != nil {
		out.note("Redis was not told: " + err.Error())
	}
	var seen lua.State
	err := c.poll(ctx, func(ctx context.Context) (bool, error) {
		var err error
		seen, err = c.deps.Ledger.Inspect(ctx, cellOf(a.ID))
		return err == nil && seen.Opened && seen.Proven && !seen.Recovering && seen.Status == a.Status &&
			seen.Catalog.StartsAt == a.StartsAt && seen.Catalog.EndsAt == a.EndsAt, err
	})
	out.Applied = err == nil
	if err != nil {
		out.note(fmt.Sprintf("it is in the database, and Redis does not show it yet (%s): %v", shownRedis(seen, nil).State, err))
	}
}

func (o *Change) note(text string) {
	if o.Note != "" {
		text = o.Note + "; " + text
	}
	o.Note = text
}

// pollEvery is how often a change is looked for: a tenth of what workers need for it.
const pollEvery = 50 * time.Millisecond

// errNotYet says that what was waited for did not come in time.
var errNotYet = errors.New("not yet")

// poll asks until it holds, at most console.apply_wait; the last error is returned.
func (c *Console) poll(ctx context.Context, holds func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, max(c.cfg.ApplyWait, pollEvery))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	last := error(errNotYet)
	for {
		ok, err := holds(ctx)
		if ok {
			return nil
		}
		if ctx.Err() != nil {
			return last
		}
		last = cmp.Or(err, error(errNotYet))
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}

func (c *Console) createActivity(r *http.Request) (any, error) {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxActivity))
	if err != nil {
		return nil, badRequest("cannot read the body: %v", err)
	}
	if !json.Valid(text) {
		return nil, badRequest("the body is not JSON")
	}
	a, err := ReadActivity("body", text)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	id, err := c.deps.Store.CreateActivity(r.Context(), a)
	if err != nil {
		return nil, err
	}
	created, err := c.deps.Store.Activity(r.Context(), id)
	if err != nil {
		return nil, err
	}
	out := Created{ID: id, Change: Change{Changed: true, Applied: true, After: brief(created)}}
	c.record(r, &out.Change, sql.Operation{Action: "create", Activity: id, After: out.After})
	out.Activity = c.show(r.Context(), created)
	return out, nil
}

// Created is the answer of create.
type Created struct {
	ID sale.ID `json:"id"`
	Change
}

// preheat loads the stock into Redis: the same steps as a worker's, which does it by itself some time before the start.
func (c *Console) preheat(ctx context.Context, a sql.Activity, _ *http.Request) error {
	if a.Status == sale.Ended {
		return conflict("activity %s has ended", a.ID)
	}
	if a.Status != sale.Created {
		return nil
	}
	a, remaining, err := c.deps.Store.Opening(ctx, a.ID)
	if err != nil {
		return err
	}
	epoch, live := a.Epoch, a.Activity
	live.Status = sale.Live
	switch code, err := c.deps.Ledger.Open(ctx, live, epoch, remaining); {
	case err != nil:
		return err
	case code == lua.Stale:
		return fmt.Errorf("cannot preheat activity %s: %w", a.ID, lua.ErrStale)
	case code == lua.Unproven:
		return fmt.Errorf("cannot preheat activity %s: %w", a.ID, lua.ErrUnproven)
	}
	if err := c.deps.Store.RecordLive(ctx, a.ID, epoch, nil); err != nil {
		return err
	}
	return c.deps.Store.MarkOpened(ctx, a.ID)
}

// open lets buyers in now: preheated where it is not, and the start moved to now where it lies ahead.
func (c *Console) open(ctx context.Context, a sql.Activity, r *http.Request) error {
	now := sale.At(c.now())
	switch {
	case a.Status == sale.Ended:
		return conflict("activity %s has ended", a.ID)
	case a.Status == sale.Paused:
		return conflict("activity %s is paused: resume it", a.ID)
	case a.EndsAt <= now:
		return conflict("the window of activity %s is over: extend it first", a.ID)
	case a.StartsAt > now && a.EndsAt.Time().Sub(now.Time()) > sale.MaxWindow:
		return conflict("activity %s ends more than a year from now: shorten it first", a.ID)
	case a.StartsAt > now:
		if err := c.deps.Store.SetWindow(ctx, a.ID, now, a.EndsAt); err != nil {
			return err
		}
	}
	return c.preheat(ctx, a, r)
}

func (c *Console) pause(ctx context.Context, a sql.Activity, _ *http.Request) error {
	if _, err := c.deps.Store.SetStatus(ctx, a.ID, sale.Paused); err != nil {
		return err
	}
	_ = c.deps.Ledger.Pause(ctx, cellOf(a.ID)) // where Redis does not answer, await tells; what is wanted is written down
	return nil
}

func (c *Console) resume(ctx context.Context, a sql.Activity, _ *http.Request) error {
	if a.Status == sale.Created {
		return conflict("activity %s is not open yet: open or preheat it", a.ID)
	}
	if _, err := c.deps.Store.SetStatus(ctx, a.ID, sale.Live); err != nil {
		return err
	}
	_ = c.deps.Ledger.Resume(ctx, cellOf(a.ID)) // as in pause
	return nil
}

func (c *Console) end(ctx context.Context, a sql.Activity, _ *http.Request) error {
	_, err := c.deps.Store.SetStatus(ctx, a.ID, sale.Ended)
	return err
}

// extendBody moves the end by a duration. From, the end that the operator saw, makes it safe to repeat.
type extendBody struct {
	By   string      `json:"by"`
	From sale.Millis `json:"from,omitzero"`
}

func (c *Console) extend(ctx context.Context, a sql.Activity, r *http.Request) error {
	var b extendBody
	if err := body(r, &b); err != nil {
		return err
	}
	by, err := time.ParseDuration(b.By)
	if err != nil || by == 0 || by%time.Millisecond != 0 {
		return badRequest(`by: want a duration like "10m" or "-30s"`)
	}
	from := cmp.Or(b.From, a.EndsAt)
	ends := from + sale.Millis(by.Milliseconds())
	switch {
	case a.Status != sale.Ended && a.EndsAt == ends && b.From != 0:
		return nil // done before
	case a.EndsAt != from:
		return conflict("activity %s ends at %s, not at %s: look again", a.ID, a.EndsAt.Time(), from.Time())
	case ends <= sale.At(c.now()):
		return badRequest("by: the end would be %s, which is over: use end", ends.Time())
	case ends.Time().Sub(a.StartsAt.Time()) > sale.MaxWindow:
		return badRequest("by: the end would be more than a year after the start")
	}
	return c.deps.Store.SetWindow(ctx, a.ID, a.StartsAt, ends)
}
