package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
	"floodgate/worker"
)

// began is a role that says when it runs.
type began struct{ at chan struct{} }

func (b began) Run(context.Context) error { close(b.at); return nil }
func (b began) Ready() error              { return errors.New("not asked") }

// After kill -9 the Redis inside is empty: the edge begins only when every activity that was open is there again, since it would call
// it unknown before, and a buyer would believe that.
func TestEdgeBeginsWhenRedisIsRebuilt(t *testing.T) {
	store, err := sql.Open(t.Context(), sql.Config{Driver: sql.SQLite, DSN: filepath.Join(t.TempDir(), "floodgate.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if _, err := store.Migrate(t.Context(), "up"); err != nil {
		t.Fatal(err)
	}
	now := sale.At(time.Now())
	for _, title := range []string{"opened", "created only"} {
		_, err := store.CreateActivity(t.Context(), sale.Activity{Title: title, StartsAt: now, EndsAt: now + 60_000, PerUserLimit: 1, PayWindow: time.Minute,
			Items: []sale.Item{{Commodity: 1, Title: "i", Price: 1, Total: 1}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := store.Activities(t.Context(), 0, 10)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	opened := all[1]
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	p := &parts{store: store, ledger: lua.New(rdb, lua.Options{Embedded: true})}
	preheat := func() {
		if err := worker.Preheat(t.Context(), store, p.ledger, opened); err != nil {
			t.Fatal(err)
		}
	}
	preheat()
	if !p.rebuilt(t.Context()) {
		t.Error("both are as they should be")
	}
	if err := p.ledger.Drop(t.Context(), lua.Cell{Activity: opened.ID}); err != nil { // kill -9
		t.Fatal(err)
	}
	edge := began{make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- (&later{role: edge, until: p.rebuilt}).Run(t.Context()) }()
	if p.rebuilt(t.Context()) {
		t.Error("an empty Redis is taken for rebuilt")
	}
	select {
	case <-edge.at:
		t.Error("the edge began before Redis was rebuilt")
	default:
	}
	preheat()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the edge never began")
	}
}
