package lua

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"floodgate/sale"
)

// scanPage is how many fields HSCAN is asked for at once: 500 records are 100 KB.
const scanPage = 500

// Reservations reads records by token, at most [MaxBatch]; a token that is not there is absent from the map.
func (l *Ledger) Reservations(ctx context.Context, c Cell, list ...sale.Token) (map[sale.Token]sale.Reservation, error) {
	if err := checkSize(len(list), MaxBatch); err != nil || len(list) == 0 {
		return nil, err
	}
	fields := make([]string, len(list))
	for i, t := range list {
		fields[i] = string(t)
	}
	values, err := l.rdb.HMGet(ctx, keysOf(c)[keyRes], fields...).Result()
	if err != nil {
		return nil, fmt.Errorf("cannot read reservations: %w", err)
	}
	out := make(map[sale.Token]sale.Reservation, len(list))
	for i, v := range values {
		record, ok := v.(string)
		if !ok {
			continue
		}
		if out[list[i]], err = unpack(list[i], record); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Activities lists what was opened and not dropped, in no order. One whose keys have expired is still listed.
func (l *Ledger) Activities(ctx context.Context) ([]sale.ID, error) {
	members, err := l.rdb.SMembers(ctx, ActivitiesKey).Result()
	if err != nil {
		return nil, fmt.Errorf("cannot read the activities: %w", err)
	}
	ids := make([]sale.ID, len(members))
	for i, m := range members {
		if ids[i], err = sale.ParseID(m); err != nil {
			return nil, fmt.Errorf("the set of activities has %q: %w", m, err)
		}
	}
	return ids, nil
}

// Ledger reads at most limit transitions after the id, oldest first; "" is the start. Fields: op and at always; item,
// tokens (joined by ','), users (user:quantity), units, stock, epoch and why where they say something.
func (l *Ledger) Ledger(ctx context.Context, c Cell, after string, limit int) ([]Entry, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	list, err := l.rdb.XRangeN(ctx, keysOf(c)[keyLedger], from, "+", int64(limit)).Result()
	if err != nil {
		return nil, fmt.Errorf("cannot read the ledger of activity %s: %w", c.Activity, err)
	}
	out := make([]Entry, len(list))
	for i, m := range list {
		out[i] = Entry{ID: m.ID, Fields: make(map[string]string, len(m.Values))}
		for k, v := range m.Values {
			out[i].Fields[k] = v.(string)
		}
	}
	return out, nil
}

// Scan walks all reservations in pages. Each that is there the whole time comes at least once, perhaps twice. An error
// of page ends the walk and is returned.
func (l *Ledger) Scan(ctx context.Context, c Cell, page func([]sale.Reservation) error) error {
	return l.scan(ctx, keysOf(c)[keyRes], func(pairs []string) error {
		out := make([]sale.Reservation, 0, len(pairs)/2)
		for i := 0; i+1 < len(pairs); i += 2 {
			r, err := unpack(sale.Token(pairs[i]), pairs[i+1])
			if err != nil {
				return err
			}
			out = append(out, r)
		}
		return page(out)
	})
}

// Buyers walks who holds slots, as Scan does: tokens by slot, "" where free, as long as the last held slot.
func (l *Ledger) Buyers(ctx context.Context, c Cell, page func(user, commodity sale.ID, slots []sale.Token) error) error {
	return l.scan(ctx, keysOf(c)[keyBuyers], func(pairs []string) error {
		for i := 0; i+1 < len(pairs); i += 2 {
			u, item, _ := strings.Cut(pairs[i], ":")
			user, err := sale.ParseID(u)
			if err != nil {
				return fmt.Errorf("buyers of activity %s has field %q: %w", c.Activity, pairs[i], err)
			}
			commodity, err := sale.ParseID(item)
			if err != nil {
				return fmt.Errorf("buyers of activity %s has field %q: %w", c.Activity, pairs[i], err)
			}
			if err := page(user, commodity, tokens(pairs[i+1])); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *Ledger) scan(ctx context.Context, key string, page func(pairs []string) error) error {
	var cursor uint64
	for {
		pairs, next, err := l.rdb.HScan(ctx, key, cursor, "", scanPage).Result()
		if err != nil {
			return fmt.Errorf("cannot scan %s: %w", key, err)
		}
		if err := page(pairs); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// Drop unlinks every key of a cell and takes the activity from the set of activities. Safe to run twice.
func (l *Ledger) Drop(ctx context.Context, c Cell) error {
	if _, err := l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Unlink(ctx, keysOf(c)[:]...)
		p.SRem(ctx, ActivitiesKey, c.Activity.String())
		return nil
	}); err != nil {
		return fmt.Errorf("cannot drop activity %s: %w", c.Activity, err)
	}
	return nil
}
