package lua

import (
	"maps"
	"slices"
	"strings"
	"time"

	"floodgate/sale"
)

// fail lets Redis fail: it restarts with its data (another run id), or it loses everything, or a worker unproves it.
func (d *driver) fail() func() {
	what := d.r.IntN(5)
	return func() {
		switch what {
		case 0, 1, 2:
			if d.a.opened && d.a.proven {
				must[int64](d.t)(d.rdb.HSet(d.ctx, keysOf(d.cell)[0], "run_id", "another").Result())
			}
		case 3:
			must[bool](d.t)(true, d.Unprove(d.ctx, d.cell))
		case 4:
			for t, r := range d.a.res {
				if r.State == sale.Committed && d.a.live(t) {
					d.rows[t] = r // the database has them; occupied ones are lost until their message is claimed
				}
			}
			must[bool](d.t)(true, d.Drop(d.ctx, d.cell))
			d.a.opened, d.a.recovering, d.a.building, d.a.epoch, d.a.version = false, false, -1, 0, 0
			d.a.stock, d.a.shown, d.a.res = nil, map[sale.Token]bool{}, map[sale.Token]sale.Reservation{}
			d.a.pending, d.a.lots = map[string]bool{}, map[string]bool{}
		}
		d.a.proven = false
		d.did += " fail"
	}
}

// recover makes one step of a recovery, or one of a recoverer that slept through the epochs.
func (d *driver) recover() func() {
	switch {
	case d.r.IntN(6) == 0:
		return d.sleeper
	case d.a.opened && d.a.proven && d.a.recovering:
		return func() {
			want := Again
			if d.a.recovering {
				want = Reserved
				d.a.version++
			}
			d.a.recovering = false
			d.same("live", must[Code](d.t)(d.RebuildLive(d.ctx, d.cell, d.a.epoch)), want)
		}
	case d.a.building < d.tried || d.a.building == d.a.epoch && d.a.opened || d.a.building < 0:
		return d.begin
	}
	return d.finish
}

func (d *driver) begin() {
	d.tried++
	d.same("begin", must[Code](d.t)(d.RebuildBegin(d.ctx, d.cell, d.tried)), Reserved)
	d.a.building, d.a.proven, d.a.stock, d.a.shown, d.a.pending = d.tried, false, nil, map[sale.Token]bool{}, map[string]bool{}
}

// finish writes pages and stock. Rows that a loss took from Redis come back; some of the occupied are dropped, as those
// of an older epoch are.
func (d *driver) finish() {
	if d.a.building != d.tried || d.a.opened && d.a.building == d.a.epoch {
		return
	}
	var keep []sale.Reservation
	var drop []sale.Token
	for _, t := range slices.Sorted(maps.Keys(d.a.res)) {
		if r := d.a.res[t]; r.State == sale.Occupied && d.r.IntN(4) == 0 {
			drop = append(drop, t)
			delete(d.a.res, t)
		} else {
			keep = append(keep, r)
		}
	}
	for _, t := range slices.Sorted(maps.Keys(d.rows)) {
		keep = append(keep, d.rows[t])
		d.a.res[t] = d.rows[t]
	}
	clear(d.rows)
	for i := range keep {
		keep[i].ReservedAt = sale.At(time.Now()) // the auditor keeps no times; an old one would have passed its hold
	}
	for range 1 + d.r.IntN(2) { // a page may be written twice
		d.same("page", must[Code](d.t)(d.RebuildPage(d.ctx, d.cell, d.tried, keep, drop)), Reserved)
	}
	d.show(keep)
	d.end()
}

func (d *driver) show(keep []sale.Reservation) {
	var occupied, released []string
	for _, r := range keep {
		d.a.shown[r.Token] = true
		switch r.State {
		case sale.Occupied:
			occupied = append(occupied, string(r.Token))
		case sale.Released:
			released = append(released, string(r.Token))
		}
	}
	if len(occupied) > 0 {
		d.a.pending[strings.Join(occupied, ",")] = true
	}
	if len(released) > 0 {
		d.a.pending["!"+strings.Join(released, ",")] = true
	}
}

func (d *driver) end() {
	a := d.a
	a.stock, a.shown = maps.Clone(a.loaded), nil
	for _, r := range a.res {
		if r.State != sale.Released {
			a.stock[r.Commodity] -= int64(r.Quantity)
		}
	}
	d.sale.PerUserLimit = 2
	d.same("end", must[Code](d.t)(d.RebuildEnd(d.ctx, d.sale, d.tried, a.stock)), Reserved)
	wrong := map[sale.ID]int64{1: 99}
	d.same("end again", must[Code](d.t)(d.RebuildEnd(d.ctx, d.sale, d.tried, wrong)), Again)
	a.opened, a.proven, a.recovering, a.status, a.limit, a.epoch = true, true, true, sale.Live, 2, d.tried
	a.version++
}

// sleeper was stopped in its recovery and wakes epochs later: nothing it does may count.
func (d *driver) sleeper() {
	old := d.tried - 1
	if old < 0 || max(d.a.building, d.a.epoch) <= old {
		return
	}
	page := []sale.Reservation{{Token: "x", State: sale.Occupied, User: 1, Commodity: item, Quantity: 1, Slots: []int{0}, Outcome: sale.Accepted}}
	d.same("old begin", must[Code](d.t)(d.RebuildBegin(d.ctx, d.cell, old)), Stale)
	d.same("old page", must[Code](d.t)(d.RebuildPage(d.ctx, d.cell, old, page, nil)), Stale)
	d.same("old end", must[Code](d.t)(d.RebuildEnd(d.ctx, d.sale, old, map[sale.ID]int64{item: 9})), Stale)
	if d.a.opened && d.a.epoch != old {
		d.same("old live", must[Code](d.t)(d.RebuildLive(d.ctx, d.cell, old)), Stale)
	}
}
