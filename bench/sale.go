package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"floodgate/sale"
)

// open creates an activity with one item that is on sale now, and waits until the edges sell it.
func (s *shop) open(ctx context.Context, units int64, edges ...string) (sale.ID, error) {
	now := time.Now()
	var created struct {
		ID sale.ID `json:"id"`
	}
	err := s.operate(ctx, http.MethodPost, "/activities", map[string]any{
		"title": "bench", "startsAt": now.Add(-time.Minute).Format(time.RFC3339), "endsAt": now.Add(time.Hour).Format(time.RFC3339),
		"perUserLimit": 1, "payWindow": "15m",
		"items": []any{map[string]any{"commodityId": commodity.String(), "title": "unit", "price": "99.00", "total": units}},
	}, &created)
	if err != nil {
		return 0, fmt.Errorf("cannot create an activity: %w", err)
	}
	s.sold = append(s.sold, created.ID)
	for _, edge := range edges {
		if err := eventually(ctx, 20*time.Second, "the activity is live on "+edge, func() bool {
			var a struct{ Status string }
			return s.get(ctx, "http://"+s.addr[edge]+"/api/activities/"+created.ID.String(), "", &a) == http.StatusOK && a.Status == "live"
		}); err != nil {
			return 0, err
		}
	}
	return created.ID, nil
}

// get reads JSON as a buyer; 0 is no answer.
func (s *shop) get(ctx context.Context, url, jwt string, into any) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	if jwt != "" {
		req.Header.Set("Authorization", "Bearer "+jwt)
	}
	res, err := s.waiting.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	if json.NewDecoder(res.Body).Decode(into) != nil {
		return 0
	}
	return res.StatusCode
}

// audit is what the console's audit says of an activity, in our words.
type audit struct {
	Balanced   bool `json:"balanced"`
	Exact      bool `json:"exact"`
	Activities []struct {
		Items []struct {
			Total, Remaining, Occupied, LiveUnits int64
		}
		Faults []struct{ Text string }
	}
}

// books audits an activity after a run: the console's audit, and what buyers were told beside it. unsure is how many requests got no
// answer: any of them may have taken a unit.
func (s *shop) books(ctx context.Context, id sale.ID, accepted, unsure int64) (Books, error) {
	out := Books{Balanced: true, Accepted: accepted}
	var a audit
	for try := 0; try < 3 && !a.Exact; try++ { // what is in flight lands meanwhile
		if err := s.operate(ctx, http.MethodGet, "/activities/"+id.String()+"/audit", nil, &a); err != nil {
			return out, fmt.Errorf("cannot audit: %w", err)
		}
	}
	if len(a.Activities) != 1 || len(a.Activities[0].Items) != 1 {
		return out, fmt.Errorf("the audit tells of %d activities", len(a.Activities))
	}
	item := a.Activities[0].Items[0]
	out.Total, out.Remaining, out.Occupied, out.LiveOrders = item.Total, item.Remaining, item.Occupied, item.LiveUnits
	for _, f := range a.Activities[0].Faults {
		out.fault("audit: %s", f.Text)
	}
	taken := item.Occupied + item.LiveUnits
	switch {
	case !a.Balanced:
		out.Balanced = false
	case !a.Exact:
		out.fault("the sale did not come to rest: its sums are bounds only")
	case taken < accepted:
		out.fault("%d buyers were told accepted, and %d units are taken", accepted, taken)
	case taken > accepted+unsure:
		out.fault("%d units are taken, %d buyers were told accepted and %d requests got no answer", taken, accepted, unsure)
	}
	return out, nil
}

// placed waits until so many units of an activity stand in the database.
func (s *shop) placed(ctx context.Context, id sale.ID, units int64, within time.Duration) error {
	return eventually(ctx, within, fmt.Sprintf("%d orders are placed", units), func() bool {
		a, err := s.store.Activity(ctx, id)
		return err == nil && len(a.States) == 1 && a.States[0].Sold >= units
	})
}

// eventually looks every 20 ms until the condition holds.
func eventually(ctx context.Context, within time.Duration, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %s", within, what)
		}
	}
	return nil
}
