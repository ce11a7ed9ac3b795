package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"floodgate/mq"
	"floodgate/sql"
)

// symptom is one line of the doctor's.
type symptom struct {
	Part  string `json:"part"`
	Level string `json:"level"` // ok, warn, fail
	Text  string `json:"text"`  // what is, and what to change
}

// doctor looks at each part of a configuration.
type doctor struct {
	ctx   context.Context
	parts *parts
	list  []symptom
}

func (d *doctor) say(level, part, text string, args ...any) {
	d.list = append(d.list, symptom{part, level, fmt.Sprintf(text, args...)})
}

// expect says ok, or the level with what to change.
func (d *doctor) expect(ok bool, level, part, fine, otherwise string) {
	if ok {
		level, otherwise = "ok", fine
	}
	d.say(level, part, "%s", otherwise)
}

const doctorWait = 5 * time.Second // for each part; one that needs longer is not fit for a sale

func doctorCommand() *cobra.Command {
	c := &cobra.Command{Use: "doctor", Short: "can each part be reached, and is its configuration right for a sale", Args: cobra.NoArgs}
	c.Flags().StringP("output", "o", "text", "text or json")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := newOperator(cmd)
		if err != nil {
			return err
		}
		d := &doctor{ctx: o.ctx, parts: newParts(o.cfg, slog.New(slog.DiscardHandler))}
		defer d.parts.close()
		d.examine(o)
		bad := false
		for _, s := range d.list {
			bad = bad || s.Level == "fail"
		}
		err = o.print(map[string]any{"ok": !bad, "symptoms": d.list}, func(w io.Writer) {
			for _, s := range d.list {
				fmt.Fprintf(w, "%s\t%s\t%s\n", s.Level, s.Part, s.Text)
			}
		})
		if err == nil && bad {
			err = errCheckFailed
		}
		return err
	}
	return c
}

func (d *doctor) examine(o *operator) {
	d.console(o)
	if len(o.cfg.Redis.Addrs) == 0 {
		d.say("warn", "redis", "inside `floodgate serve`, for trying out and small shops: set redis.addrs, mq and db for a real sale; the console's readiness tells of all parts")
		return
	}
	d.keys()
	for _, look := range []func(context.Context){d.redis, d.database, d.queue, d.orders} {
		ctx, cancel := context.WithTimeout(d.ctx, doctorWait)
		look(ctx)
		cancel()
	}
}

// console asks whether the console is ready; where everything is inside one process it speaks for all of it.
func (d *doctor) console(o *operator) {
	level := "warn"
	if len(o.cfg.Redis.Addrs) == 0 {
		level = "fail"
	}
	if err := o.connect(); err != nil {
		d.say(level, "console", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(d.ctx, doctorWait)
	defer cancel()
	status, text, err := get(ctx, o.url+"/readyz")
	switch {
	case err != nil:
		d.say(level, "console", "does not answer at %s: start `floodgate serve` or `floodgate console`, or change console.listen", o.url)
	case status != http.StatusOK:
		d.say(level, "console", "is not ready at %s: %s", o.url, text)
	default:
		d.say("ok", "console", "ready at %s", o.url)
	}
}

func get(ctx context.Context, url string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	return resp.StatusCode, strings.TrimSpace(string(text)), err
}

func (d *doctor) keys() {
	if err := d.parts.openKeys(); err != nil {
		d.say("fail", "keys", "%v", err)
		return
	}
	d.say("ok", "keys", "internal.key and auth.key can be used")
	d.expect(!d.parts.cfg.Demo, "warn", "keys", "buyers log in by your own tokens", "demo is on: everybody may log in as anybody; set demo to false for a sale")
}

func (d *doctor) redis(ctx context.Context) {
	if err := d.parts.openRedis(ctx); err != nil {
		d.say("fail", "redis", "%v", err)
		return
	}
	rdb, addrs := d.parts.rdb, strings.Join(d.parts.cfg.Redis.Addrs, ",")
	began := time.Now()
	at, err := rdb.Time(ctx).Result()
	if err != nil {
		d.say("fail", "redis", "does not answer at %s: %v: start it, or change redis.addrs", addrs, err)
		return
	}
	d.say("ok", "redis", "answers at %s in %s", addrs, time.Since(began).Round(10*time.Microsecond))
	drift := at.Sub(began).Round(time.Millisecond)
	d.expect(drift.Abs() < time.Second, "warn", "redis", "its clock is this machine's", fmt.Sprintf("its clock is %s off this machine's: run NTP on both", drift))
	for _, want := range []struct{ key, value, level, why string }{
		{"appendonly", "yes", "fail", "an accepted purchase must be on disk"},
		{"appendfsync", "always", "warn", "a power cut may lose a second of accepted purchases; RocketMQ still has them"},
		{"maxmemory-policy", "noeviction", "fail", "an evicted key is lost stock"},
	} {
		got, err := rdb.ConfigGet(ctx, want.key).Result()
		if err != nil || got[want.key] == "" {
			d.say("warn", "redis", "does not tell %s (%v): see that it is %s", want.key, err, want.value)
			continue
		}
		d.expect(got[want.key] == want.value, want.level, "redis", want.key+" is "+want.value,
			fmt.Sprintf("%s is %s: set it to %s: %s", want.key, got[want.key], want.value, want.why))
	}
}

func (d *doctor) database(ctx context.Context) {
	if err := d.parts.openStore(ctx); err != nil {
		d.say("fail", "database", "%v", err)
		return
	}
	d.say("ok", "database", "answers")
	if err := d.parts.checkMigrated(ctx); err != nil {
		d.say("fail", "database", "%v", err)
		return
	}
	d.say("ok", "database", "its tables are of this version")
	if d.parts.cfg.DB.Driver != sql.MySQL {
		d.say("warn", "database", "SQLite is for one process: use db.driver mysql for a real sale")
		return
	}
	var name, flush string
	err := d.parts.store.DB().QueryRowContext(ctx, "SHOW VARIABLES LIKE 'innodb_flush_log_at_trx_commit'").Scan(&name, &flush)
	if err != nil {
		d.say("warn", "database", "does not tell innodb_flush_log_at_trx_commit (%v): see that it is 1", err)
		return
	}
	d.expect(flush == "1", "warn", "database", "innodb_flush_log_at_trx_commit is 1",
		fmt.Sprintf("innodb_flush_log_at_trx_commit is %s: set it to 1: a crash may lose orders that buyers were told of", flush))
}

func (d *doctor) queue(ctx context.Context) {
	if d.parts.cfg.MQ.Driver == "table" {
		d.say("warn", "queue", "driver table lives inside `floodgate serve`: use mq.driver rocketmq for a real sale")
		return
	}
	admin, err := mq.NewRocketAdmin(d.parts.cfg.MQ, d.parts.log)
	if err != nil {
		d.say("fail", "queue", "%v", err)
		return
	}
	ends, err := admin.Ends(ctx)
	if err == nil && len(ends) == 0 {
		err = errors.New("the topic has no queues")
	}
	if err != nil {
		d.say("fail", "queue", "cannot read topic %s: %v: start RocketMQ, create the topic, or change mq.nameservers", d.parts.cfg.MQ.Topic, err)
		return
	}
	d.say("ok", "queue", "topic %s has %d queues", d.parts.cfg.MQ.Topic, len(ends))
	if parked, err := admin.Parked(ctx); err == nil {
		d.expect(parked == 0, "warn", "queue", "nothing is parked", fmt.Sprintf("%d messages lie in the retry topic: they come back within hours", parked))
	}
	letters, err := admin.List(ctx, 1)
	if err != nil {
		d.say("fail", "queue", "cannot read the dead letters: %v: create the topic %s_dead", err, d.parts.cfg.MQ.Topic)
		return
	}
	d.expect(len(letters) == 0, "warn", "queue", "no dead letters", "there are dead letters: see `floodgate dead-letters list`")
}

// orders asks the order API of every worker that edges know; unsigned, so that a refusal is the right answer.
func (d *doctor) orders(ctx context.Context) {
	if len(d.parts.cfg.Edge.Workers) == 0 {
		d.say("warn", "workers", "edge.workers is empty: edges cannot read orders; list the workers' addresses")
	}
	for _, w := range d.parts.cfg.Edge.Workers {
		status, _, err := get(ctx, strings.TrimSuffix(w, "/")+"/internal/orders?user=1")
		d.expect(err == nil && status == http.StatusUnauthorized, "fail", "workers", "the order API answers at "+w,
			fmt.Sprintf("no order API answers at %s: start a worker there, or change edge.workers", w))
	}
}
