package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"floodgate/lua"
	"floodgate/sale"
)

// did calls an action that must be answered with 200 and gives the answer.
func (w *world) did(path, body string) (c Change) {
	w.t.Helper()
	status, text := w.call("POST", path, body)
	if err := json.Unmarshal([]byte(text), &c); status != http.StatusOK || err != nil {
		w.t.Fatalf("POST %s: %d %s", path, status, text)
	}
	return c
}

// refused calls what must be refused with this status, code and part of the message.
func (w *world) refused(path, body string, status int, code, part string) {
	w.t.Helper()
	got, text := w.call("POST", path, body)
	if got != status || !strings.Contains(text, `"code":"`+code+`"`) || !strings.Contains(text, part) {
		w.t.Errorf("POST %s %s: %d %s, want %d %s %q", path, body, got, text, status, code, part)
	}
}

func at(id sale.ID, more string) string { return "/admin/api/activities/" + id.String() + more }

// One that was created by mistake is ended before it is ever opened: Redis never hears of it.
func TestEndBeforeTheOpening(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		id := w.create(time.Hour, 2*time.Hour)
		if c := w.did(at(id, "/end"), ""); !c.Changed || !c.Applied || c.Activity.Status != sale.Ended {
			t.Errorf("end: %+v", c)
		}
		w.refused(at(id, "/preheat"), "", http.StatusConflict, "conflict", "ended")
		if s := w.state(id); s.Opened {
			t.Errorf("it was opened: %+v", s)
		}
	})
}

// The life of an activity without any worker: what must hold at once is in Redis when the answer comes.
func TestLifeOfAnActivity(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		id := w.create(time.Hour, 2*time.Hour)
		w.refused(at(id, "/resume"), "", http.StatusConflict, "conflict", "not open yet")
		w.refused(at(id, "/pause"), "", http.StatusConflict, "conflict", "created cannot become paused")
		for _, step := range []struct {
			action  string
			changed bool
			status  sale.Status
		}{
			{"preheat", true, sale.Live}, {"preheat", false, sale.Live}, {"open", true, sale.Live}, {"open", false, sale.Live},
			{"pause", true, sale.Paused}, {"pause", false, sale.Paused}, {"resume", true, sale.Live}, {"resume", false, sale.Live},
			{"pause", true, sale.Paused}, {"end", true, sale.Ended}, {"end", false, sale.Ended},
		} {
			c := w.did(at(id, "/"+step.action), "")
			s := w.state(id)
			if c.Changed != step.changed || !c.Applied || c.Note != "" || c.Activity.Status != step.status || s.Status != step.status || s.Catalog.Status != step.status {
				t.Errorf("%s: %+v, in Redis %s, want changed %v, %s", step.action, c, s.Status, step.changed, step.status)
			}
		}
		if s := w.state(id); s.Remaining[thing] != 10 || s.Epoch != 1 {
			t.Errorf("the stock is %v in epoch %d", s.Remaining, s.Epoch)
		}
		for _, action := range []string{"open", "preheat", "pause", "resume"} {
			w.refused(at(id, "/"+action), "", http.StatusConflict, "conflict", "ended")
		}
		status, text := w.call("GET", "/admin/api/operations", "", "X-Operator", "alice")
		for _, want := range []string{`"action":"preheat"`, `"action":"end"`, `"who":"operator@127.0.0.1"`, `"before":"paused, `, `"after":"ended, `} {
			if status != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("the operators' log lacks %s: %s", want, text)
			}
		}
	})
}

// Opening moves the start to now, so that a purchase works at once; a pause refuses at once what no worker has seen.
func TestOpenAndPauseHoldAtOnce(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		id := w.create(time.Hour, 2*time.Hour)
		w.did(at(id, "/open"), "")
		w.reserve(id, 1, 1)
		w.did(at(id, "/pause"), "")
		r, err := w.deps.Ledger.Reserve(w.ctx, cellOf(id), thing, 9900, []lua.ReserveRequest{{Token: "t", User: 2, Quantity: 1}})
		must(t, err)
		if r.Answers[0].Code != lua.Unproven {
			t.Errorf("a paused activity sold with code %d", r.Answers[0].Code)
		}
		over := w.create(-2*time.Hour, -time.Hour)
		w.refused(at(over, "/open"), "", http.StatusConflict, "conflict", "extend it first")
	})
}

func TestExtend(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		id := w.create(-time.Hour, time.Hour)
		w.did(at(id, "/preheat"), "")
		first := w.did(at(id, "/extend"), `{"by":"10m"}`)
		ends := first.Activity.EndsAt
		if s := w.state(id); !first.Changed || !first.Applied || s.Catalog.EndsAt != ends {
			t.Errorf("%+v, in Redis %d", first, s.Catalog.EndsAt)
		}
		from, _ := json.Marshal(map[string]any{"by": "-15m", "from": ends})
		for _, changed := range []bool{true, false} { // the same request again moves nothing
			if c := w.did(at(id, "/extend"), string(from)); c.Changed != changed || c.Activity.EndsAt != ends-900_000 {
				t.Errorf("%+v, want changed %v and %d", c, changed, ends-900_000)
			}
		}
		w.refused(at(id, "/extend"), `{"by":"1h","from":5}`, http.StatusConflict, "conflict", "look again")
		w.refused(at(id, "/extend"), `{"by":"-2h"}`, http.StatusBadRequest, "bad_request", "use end")
		w.refused(at(id, "/extend"), `{"by":"9000h"}`, http.StatusBadRequest, "bad_request", "more than a year")
		w.refused(at(id, "/extend"), `{"by":"soon"}`, http.StatusBadRequest, "bad_request", "want a duration")
		w.refused(at(id, "/extend"), `{"until":"soon"}`, http.StatusBadRequest, "bad_request", `unknown field \"until\"`)
	})
}

func TestAddStockAndPrice(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		id := w.create(-time.Hour, time.Hour)
		path := at(id, "/items/"+thing.String())
		if c := w.did(path+"/stock", `{"units":5,"operation":"before"}`); !c.Changed || !c.Applied {
			t.Errorf("before the opening: %+v", c)
		}
		w.did(at(id, "/preheat"), "")
		if s := w.state(id); s.Remaining[thing] != 10 {
			t.Errorf("opened with %d units, and 5 more are to be added", s.Remaining[thing])
		}
		for _, changed := range []bool{true, false} {
			c := w.did(path+"/stock", `{"units":3,"operation":"after"}`)
			if c.Changed != changed || c.Applied || !strings.Contains(c.Note, "no worker has brought it to Redis yet") || c.Activity.Items[0].Total != 18 {
				t.Errorf("without a worker: %+v", c)
			}
		}
		if a := w.audited(id); !a.Balanced || !a.Exact || a.Activities[0].Items[0].ToApply != 8 {
			t.Errorf("with added stock on its way: %+v", a.Activities[0])
		}
		w.refused(path+"/stock", `{"units":4,"operation":"after"}`, http.StatusConflict, "conflict", "something else")
		w.refused(path+"/stock", `{"units":0}`, http.StatusBadRequest, "bad_request", "want 1 to")
		w.refused(path+"/stock", `{"units":1,"operation":"a b"}`, http.StatusBadRequest, "bad_request", "letters, digits")
		w.refused(at(id, "/items/7/stock"), `{"units":1}`, http.StatusNotFound, "not_found", "item 7")
		if c := w.did(path+"/price", `{"price":"12.50"}`); !c.Changed || w.state(id).Catalog.Items[0].Price != 1250 {
			t.Errorf("%+v", c)
		}
		w.refused(path+"/price", `{"price":12.5}`, http.StatusBadRequest, "bad_request", "not an amount")
		w.refused(path+"/price", `{}`, http.StatusBadRequest, "bad_request", "price")
	})
}

// A Redis that does not answer: what is wanted is written down, and the answer says that it is not applied.
func TestPauseWithoutRedis(t *testing.T) {
	t.Parallel()
	w, stop := newMortal(t)
	id := w.create(-time.Hour, time.Hour)
	w.did(at(id, "/preheat"), "")
	stop()
	c := w.did(at(id, "/pause"), "")
	if !c.Changed || c.Applied || !strings.Contains(c.Note, "Redis does not show it yet") || c.Activity.Redis.State != "unknown" {
		t.Errorf("%+v", c)
	}
}

func TestCreateByBody(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		good := `{"title":"t","startsAt":"2030-01-01T00:00:00Z","endsAt":"2030-01-02T00:00:00Z","perUserLimit":1,"payWindow":"15m","items":[{"commodityId":"7","title":"i","price":"1.00","total":5}]}`
		status, text := w.call("POST", "/admin/api/activities", good)
		var c Created
		if err := json.Unmarshal([]byte(text), &c); status != http.StatusOK || err != nil || c.ID == 0 {
			t.Fatalf("%d %s", status, text)
		}
		if status, text := w.call("GET", at(c.ID, ""), ""); status != http.StatusOK || !strings.Contains(text, `"status":"created"`) || !strings.Contains(text, `"remaining":null`) {
			t.Errorf("%d %s", status, text)
		}
		if status, text := w.call("GET", "/admin/api/activities?limit=1", ""); status != http.StatusOK || !strings.Contains(text, c.ID.String()) {
			t.Errorf("%d %s", status, text)
		}
		w.refused("/admin/api/activities", strings.Replace(good, `"title":"t"`, `"id":"`+c.ID.String()+`","title":"t"`, 1), http.StatusConflict, "conflict", "exists")
		w.refused("/admin/api/activities", strings.Replace(good, `"total":5`, `"total":5,"colour":"red"`, 1), http.StatusBadRequest, "bad_request", "items[0].colour: unknown field")
		w.refused("/admin/api/activities", "title: yaml", http.StatusBadRequest, "bad_request", "not JSON")
		w.refused("/admin/api/activities", `{"title":"`+strings.Repeat("x", MaxActivity)+`"}`, http.StatusBadRequest, "bad_request", "too large")
		w.refused(at(5, "/open"), "", http.StatusNotFound, "not_found", "activity 5")
		w.refused("/admin/api/activities/x/open", "", http.StatusBadRequest, "bad_request", "not an id")
	})
}

func TestLedgerLettersAndToken(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		s := w.shop()
		var all, one, page Transitions
		get := func(query string, to *Transitions) {
			status, text := w.call("GET", at(s.id, "/ledger"+query), "")
			if err := json.Unmarshal([]byte(text), to); status != http.StatusOK || err != nil {
				t.Fatalf("%d %s", status, text)
			}
		}
		get("", &all)
		get("?token="+string(s.sold.Token), &one)
		get("?limit=1", &page)
		if len(all.Transitions) < 7 || all.Transitions[0].Op != "open" || len(one.Transitions) != 2 || one.Transitions[1].Op != "commit" || len(page.Transitions) != 1 || page.Next == "" {
			t.Errorf("all %+v\none %+v\npage %+v", all, one, page)
		}
		must(t, w.deps.Letters.Add(w.ctx, sale.Message{Token: s.sold.Token, User: 101, Activity: s.id, Commodity: thing, Price: 1, Quantity: 1}, "a test"))
		if status, text := w.call("GET", "/admin/api/dead-letters", ""); status != http.StatusOK || !strings.Contains(text, "a test") {
			t.Errorf("%d %s", status, text)
		}
		if c := w.did("/admin/api/dead-letters/1/replay", ""); !c.Changed {
			t.Errorf("%+v", c)
		}
		w.refused("/admin/api/dead-letters/99/replay", "", http.StatusNotFound, "not_found", "no such dead letter")
		if a := w.audited(s.id); a.Queue.Backlog < 1 || a.Queue.DeadLetters != 1 || !a.Balanced {
			t.Errorf("%+v", a.Queue)
		}
		if status, text := w.call("POST", "/admin/api/token", `{"userId":"7","ttl":"1m"}`); status != http.StatusOK || !strings.Contains(text, "jwt-of-7-for-1m0s") {
			t.Errorf("%d %s", status, text)
		}
		w.refused("/admin/api/token", `{"userId":7}`, http.StatusBadRequest, "bad_request", "not an id")
		w.refused("/admin/api/token", `{"userId":"7","ttl":"1y"}`, http.StatusBadRequest, "bad_request", "ttl")
		w.deps.Signer = nil
		w.refused("/admin/api/token", `{"userId":"7"}`, http.StatusForbidden, "forbidden", "demo")
	})
}

// Somebody who began to preheat before a pause, and ends after it, lifts nothing.
func TestLatePreheatLiftsNoPause(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		id := w.create(-time.Hour, time.Hour)
		created, err := w.store.Activity(w.ctx, id)
		must(t, err)
		w.did(at(id, "/preheat"), "")
		w.did(at(id, "/pause"), "")
		must(t, w.preheat(w.ctx, created, nil))
		now, err := w.store.Activity(w.ctx, id)
		must(t, err)
		if now.Status != sale.Paused || w.state(id).Status != sale.Paused {
			t.Errorf("%s in the database, %s in Redis", now.Status, w.state(id).Status)
		}
	})
}
