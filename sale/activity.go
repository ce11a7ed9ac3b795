package sale

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Bounds of an activity, each refused with the field's name where it is passed.
const (
	MaxTitle     = 200                  // characters
	MaxItems     = 100                  // items an activity: a catalog of all activities stays a few MB on an edge
	MaxTotal     = 1_000_000_000        // units an item
	MaxQuantity  = 100                  // units a user and item: one slot a unit, so this bounds a reservation's record
	MaxPayWindow = 72 * time.Hour       // RocketMQ refuses timers beyond three days
	KeepKeys     = 24 * time.Hour       // Redis keeps an activity this long after its end and pay window
	MaxWindow    = 366 * 24 * time.Hour // from startsAt to endsAt
)

// Status is what the operator wants of an activity. Whether Redis is being recovered is another matter, see Recovering in lua.
type Status string

// The statuses. An activity is created, becomes live when its stock is loaded, and may be paused, resumed and ended.
const (
	Created Status = "created" // in the database only
	Live    Status = "live"
	Paused  Status = "paused" // reserve is refused; what was reserved goes on
	Ended   Status = "ended"  // for good
)

// Item is one commodity in an activity.
type Item struct {
	Commodity     ID     `json:"commodityId"`
	Title         string `json:"title"`
	Price         Cents  `json:"price"`
	Total         int64  `json:"total"`                   // units, 0..MaxTotal
	FallbackQuota int64  `json:"fallbackQuota,omitempty"` // of the total, never in Redis
}

// Activity is one sale event: a window, a limit, a pay window and its items.
type Activity struct {
	ID           ID            `json:"id"`
	Title        string        `json:"title"`
	StartsAt     Millis        `json:"startsAt"`
	EndsAt       Millis        `json:"endsAt"`       // the first instant at which nothing is sold
	PerUserLimit int           `json:"perUserLimit"` // units a user and item, 1..MaxQuantity
	PayWindow    time.Duration `json:"payWindow"`    // nanoseconds in JSON between our own parts; text ("15m") in activity files
	Captcha      bool          `json:"captcha,omitempty"`
	Status       Status        `json:"status"`
	Items        []Item        `json:"items"`
}

// FieldError names the field that is wrong and what to change.
type FieldError struct{ Field, Problem string }

// Error is "field: problem".
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// Check refuses an activity that cannot be sold, with all faults joined, each a [*FieldError].
func (a *Activity) Check() error {
	var faults []error
	want := func(ok bool, field, problem string, args ...any) {
		if !ok {
			faults = append(faults, &FieldError{field, fmt.Sprintf(problem, args...)})
		}
	}
	want(a.Title != "" && utf8.RuneCountInString(a.Title) <= MaxTitle, "title", "want 1 to %d characters", MaxTitle)
	want(a.StartsAt > 0, "startsAt", "missing")
	want(a.EndsAt > a.StartsAt, "endsAt", "must be after startsAt")
	want(a.EndsAt.Time().Sub(a.StartsAt.Time()) <= MaxWindow, "endsAt", "more than a year after startsAt")
	want(a.PerUserLimit >= 1 && a.PerUserLimit <= MaxQuantity, "perUserLimit", "want 1 to %d units", MaxQuantity)
	want(a.PayWindow >= time.Second && a.PayWindow <= MaxPayWindow, "payWindow", `want from "1s" to "72h"`)
	want(len(a.Items) >= 1 && len(a.Items) <= MaxItems, "items", "want 1 to %d items", MaxItems)
	seen := map[ID]bool{}
	for i, item := range a.Items {
		f := func(name string) string { return fmt.Sprintf("items[%d].%s", i, name) }
		want(item.Commodity > 0, f("commodityId"), "%v", ErrID)
		want(!seen[item.Commodity], f("commodityId"), "two items with commodityId %s", item.Commodity)
		seen[item.Commodity] = true
		want(item.Title != "" && utf8.RuneCountInString(item.Title) <= MaxTitle, f("title"), "want 1 to %d characters", MaxTitle)
		want(item.Total >= 0 && item.Total <= MaxTotal, f("total"), "want 0 to %d units", MaxTotal)
		want(item.Price >= 0 && item.Price <= MaxPrice, f("price"), `want "0.00" to "%s"`, MaxPrice)
		want(item.FallbackQuota >= 0 && item.FallbackQuota <= item.Total, f("fallbackQuota"), "want 0 to the item's total")
	}
	return errors.Join(faults...)
}

// Item finds a commodity's item; nil where the activity does not sell it.
func (a *Activity) Item(commodity ID) *Item {
	for i := range a.Items {
		if a.Items[i].Commodity == commodity {
			return &a.Items[i]
		}
	}
	return nil
}

// Expires is when Redis may forget the activity: a day after its end and pay window.
func (a *Activity) Expires() Millis {
	return a.EndsAt + Millis((a.PayWindow + KeepKeys).Milliseconds())
}
