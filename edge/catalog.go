package edge

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"floodgate/lua"
	"floodgate/sale"
)

// boundary is how near to the start or the end Redis decides instead of the edge's estimate of Redis's clock.
const boundary = sale.Millis(50)

// activity is one activity as last read. It never changes; the next read makes another.
type activity struct {
	sale.Activity
	epoch      int64
	selling    bool // not paused, not recovering, proven, and still in Redis
	notStarted []byte
	view       document
}

// item is one item as last read, with the place where its calls meet.
type item struct {
	sale.Item
	till *till
}

type itemKey struct{ activity, commodity sale.ID }

// snapshot is everything that is sold, swapped whole.
type snapshot struct {
	activities map[sale.ID]*activity
	items      map[itemKey]*item
	list       document
	at         time.Time // when Redis was last read in full; zero before the first
}

// catalog is what the edge knows of activities and items, read from Redis every second and never asked for a request.
type catalog struct {
	edge    *Edge
	current atomic.Pointer[snapshot]
	clock   clock
	soon    chan struct{} // read again now

	// Of the goroutine that reads:
	tills   map[itemKey]*till
	numbers uint64
	missing map[sale.ID]bool // told about once
}

func newCatalog(e *Edge) *catalog {
	c := &catalog{edge: e, soon: make(chan struct{}, 1), tills: map[itemKey]*till{}, missing: map[sale.ID]bool{}}
	c.current.Store(&snapshot{list: listOf(nil)})
	return c
}

// find gives the call its activity and item; false where there is none.
func (c *catalog) find(x *call) bool {
	s := c.current.Load()
	if x.item = s.items[itemKey{x.activity, x.commodity}]; x.item == nil {
		return false
	}
	x.sold = s.activities[x.activity]
	return true
}

// findActivity gives the call its activity; false where there is none.
func (c *catalog) findActivity(x *call) bool {
	x.sold = c.current.Load().activities[x.activity]
	return x.sold != nil
}

// unknown is what the buyer of an unknown activity is told: nothing is unknown before Redis was read once.
func (c *catalog) unknown() sale.Code {
	if c.current.Load().at.IsZero() {
		return sale.Busy
	}
	return sale.NotFound
}

// now is Redis's clock as estimated.
func (c *catalog) now() sale.Millis { return c.clock.now() }

// window says whether the activity sells at this instant. Within slack of a boundary it lets through: Redis decides.
func (a *activity) window(now, slack sale.Millis) sale.Code {
	switch {
	case a.Status == sale.Ended || now >= a.EndsAt+slack:
		return sale.EndedCode
	case now < a.StartsAt-slack:
		return sale.NotStarted
	case !a.selling:
		return sale.Busy
	}
	return open
}

// document is a prebuilt JSON body with places for the time of the answer.
type document struct {
	body []byte
	nows []int // offsets of 13 digits
}

type activityView struct {
	ID           sale.ID     `json:"id"`
	Title        string      `json:"title"`
	StartsAt     sale.Millis `json:"startsAt"`
	EndsAt       sale.Millis `json:"endsAt"`
	Status       sale.Status `json:"status"`
	PerUserLimit int         `json:"perUserLimit"`
	Captcha      bool        `json:"captcha"`
	Items        []itemView  `json:"items"`
}

type itemView struct {
	Commodity sale.ID    `json:"commodityId"`
	Title     string     `json:"title"`
	Price     sale.Cents `json:"price"`
	Total     int64      `json:"total"`
	Remaining int64      `json:"remaining"`
	SoldOut   bool       `json:"soldOut"`
}

const nowField = `{"now":`

// viewOf is the activity as buyers read it. The list may lag a second, but is never below 0 nor above the total.
func viewOf(a sale.Activity, remaining map[sale.ID]int64) document {
	v := activityView{a.ID, a.Title, a.StartsAt, a.EndsAt, a.Status, a.PerUserLimit, a.Captcha, []itemView{}}
	for _, i := range a.Items {
		left := min(max(remaining[i.Commodity], 0), i.Total)
		v.Items = append(v.Items, itemView{i.Commodity, i.Title, i.Price, i.Total, left, left == 0})
	}
	rest, err := json.Marshal(v)
	if err != nil {
		panic("edge: " + err.Error())
	}
	body := append([]byte(nowField+fixedNow+","), rest[1:]...)
	return document{body: body, nows: []int{len(nowField)}}
}

func listOf(all []*activity) document {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *activity) int {
		if a.StartsAt != b.StartsAt {
			return int(a.StartsAt - b.StartsAt)
		}
		return int(a.ID - b.ID)
	})
	d := document{body: []byte(nowField + fixedNow + `,"activities":[`), nows: []int{len(nowField)}}
	for i, a := range all {
		if i > 0 {
			d.body = append(d.body, ',')
		}
		d.nows = append(d.nows, len(d.body)+len(nowField))
		d.body = append(d.body, a.view.body...)
	}
	d.body = append(d.body, "]}"...)
	return d
}

// fresh says why the catalog should not be trusted: nil when Redis was read within the last seconds.
func (c *catalog) fresh() error {
	if at := c.current.Load().at; at.IsZero() || time.Since(at) > staleAfter {
		return errStale
	}
	return nil
}

// clock estimates Redis's clock from its answers: the one with the shortest way there and back says most.
type clock struct{ best atomic.Pointer[reading] }

type reading struct {
	at    time.Time // monotonic, the middle of the call
	redis sale.Millis
	way   time.Duration
}

// readingAge is when a good reading gives way to a worse but younger one: clocks drift.
const readingAge = 10 * time.Second

func (k *clock) now() sale.Millis {
	r := k.best.Load()
	if r == nil {
		return sale.At(time.Now())
	}
	return r.redis + sale.Millis(time.Since(r.at).Milliseconds())
}

func (k *clock) observe(asked, answered time.Time, redis sale.Millis) {
	way := answered.Sub(asked)
	old := k.best.Load()
	here := asked.Add(way / 2)
	// A clock that was set (in tests, or by hand) is believed at once.
	if old != nil && way > old.way && here.Sub(old.at) < readingAge {
		expected := old.redis + sale.Millis(here.Sub(old.at).Milliseconds())
		if off := redis - expected; off > -boundary && off < boundary {
			return
		}
	}
	k.best.Store(&reading{at: here, redis: redis, way: way})
}

var _ Reader = (*lua.Ledger)(nil)

func (c *catalog) inspect(ctx context.Context, id sale.ID) (lua.State, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	asked := time.Now()
	state, err := c.edge.deps.Ledger.Inspect(ctx, lua.Cell{Activity: id})
	if err == nil && state.Now > 0 {
		c.clock.observe(asked, time.Now(), state.Now)
	}
	return state, err
}
