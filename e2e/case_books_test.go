package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/sale"
)

// sums is what the audit says of an item.
type sums struct{ Total, Remaining, Occupied, LiveUnits, Difference int64 }

// audited is what the audit says of an activity.
type audited struct {
	Balanced, Exact bool
	Activities      []struct {
		Items []struct {
			CommodityID sale.ID
			sums
		}
		Faults []struct{ Check string }
	}
	exit0 bool
}

func (r *rig) auditOf(activity sale.ID) (a audited) {
	out, err := r.command("audit", activity.String(), "-o", "json")
	a.exit0 = err == nil
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&a); err != nil || len(a.Activities) != 1 {
		r.t.Logf("audit of %s: %v %s", activity, err, out)
		return audited{}
	}
	return a
}

// books waits until nothing is in flight, demands balanced books, and returns the sums by item.
func (r *rig) books(activity sale.ID) map[sale.ID]sums {
	r.t.Helper()
	var a audited
	items := map[sale.ID]sums{}
	r.eventually(40*time.Second, "the books are balanced and at rest", func() bool {
		a = r.auditOf(activity)
		still := a.exit0 && a.Balanced && a.Exact
		for _, b := range a.Activities {
			for _, i := range b.Items {
				items[i.CommodityID] = i.sums
				still = still && i.Occupied == 0
			}
		}
		return still
	})
	for id, s := range items {
		if s.Remaining < 0 || s.LiveUnits > s.Total || s.Remaining+s.LiveUnits != s.Total {
			r.t.Errorf("item %s: %+v", id, s)
		}
	}
	return items
}

// rows counts an activity's orders in the database; the query's tail narrows them.
func (r *rig) rows(activity sale.ID, and string, args ...any) (n int) {
	r.t.Helper()
	err := r.db.QueryRow("SELECT COUNT(*) FROM orders WHERE activity_id = ? "+and, append([]any{int64(activity)}, args...)...).Scan(&n)
	if err != nil {
		r.t.Error(err)
	}
	return n
}

// redisStock is what Redis holds of an item; "" where it has none.
func (r *rig) redisStock(activity, item sale.ID) string {
	r.t.Helper()
	v, err := r.rdb.HGet(context.Background(), stockKey(activity), item.String()).Result()
	if err != nil && err != redis.Nil {
		r.t.Error(err)
	}
	return v
}

func stockKey(activity sale.ID) string { return "seckill:{" + activity.String() + ".0}:stock" }
