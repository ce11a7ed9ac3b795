package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"floodgate/identity"
	"floodgate/lua"
	"floodgate/sale"
	"floodgate/sql"
)

// commodity is the one item that every activity of a benchmark sells.
const commodity sale.ID = 1001

// shop is one installation: a database and topics of its own, and the processes that were started for it.
type shop struct {
	b       *bench
	dir     string
	env     []string
	store   *sql.Store // nil where everything is embedded
	ledger  *lua.Ledger
	signer  *identity.Signer
	tokens  *sale.TokenKey
	procs   []*process
	addr    map[string]string // of the newest process of a role
	sold    []sale.ID         // activities that were created
	waiting http.Client
}

// newShop makes keys, and on the real stack a database and topics; it starts nothing. Close removes all of it.
func (b *bench) newShop(ctx context.Context) (*shop, error) {
	name := strings.ToLower(rand.Text()[:12])
	s := &shop{b: b, dir: filepath.Join(b.dir, name), addr: map[string]string{}, waiting: http.Client{Timeout: 2 * time.Minute}}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	auth, internal := rand.Text()+rand.Text(), rand.Text()+rand.Text()
	var err error
	if s.signer, err = identity.NewSigner(identity.Config{Alg: identity.HS256, Key: auth}); err != nil {
		return nil, err
	}
	s.tokens = sale.NewTokenKey([]byte(internal))
	s.env = append(os.Environ(), "FLOODGATE_AUTH_ALG=HS256", "FLOODGATE_AUTH_KEY="+auth, "FLOODGATE_INTERNAL_KEY="+internal,
		"FLOODGATE_DATA_DIR="+s.dir, "FLOODGATE_LOG_LEVEL=warn", "FLOODGATE_CONSOLE_LISTEN=127.0.0.1:0")
	if b.opt.Redis == nil {
		return s, nil
	}
	rdb := redis.NewUniversalClient(b.opt.Redis)
	s.ledger = lua.New(rdb, lua.Options{})
	b.onEnd(rdb.Close)
	if err := s.makeDatabase(ctx, "floodgate_bench_"+name); err != nil {
		return nil, err
	}
	return s, s.makeTopics(ctx, "floodgate_bench_"+name)
}

// makeDatabase makes an empty database beside the configured one, by the same user, and its tables.
func (s *shop) makeDatabase(ctx context.Context, name string) error {
	cfg, err := mysql.ParseDSN(s.b.opt.DB.DSN)
	if err != nil {
		return fmt.Errorf("db.dsn: %w", err)
	}
	root, err := sql.Open(ctx, s.b.opt.DB)
	if err != nil {
		return err
	}
	s.b.onEnd(root.Close)
	if _, err := root.DB().ExecContext(ctx, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		return fmt.Errorf("cannot make a database of its own (the user of db.dsn needs the right to): %w", err)
	}
	s.b.onEnd(func() error {
		_, err := root.DB().ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+name)
		return err
	})
	cfg.DBName = name
	db := s.b.opt.DB
	db.DSN = cfg.FormatDSN()
	s.env = append(s.env, "FLOODGATE_DB_DRIVER=mysql", "FLOODGATE_DB_DSN="+db.DSN)
	if s.store, err = sql.Open(ctx, db); err != nil {
		return err
	}
	s.b.onEnd(s.store.Close)
	_, err = s.store.Migrate(ctx, "up")
	return err
}

// makeTopics makes the order topic and the one of its dead letters on every broker.
func (s *shop) makeTopics(ctx context.Context, name string) error {
	cfg := s.b.opt.MQ
	addrs, err := brokers(ctx, cfg.NameServers, cfg.Topic)
	if err != nil {
		return err
	}
	s.env = append(s.env, "FLOODGATE_MQ_DRIVER=rocketmq", "FLOODGATE_MQ_TOPIC="+name, "FLOODGATE_MQ_GROUP="+name)
	for _, topic := range []string{name, name + "_dead"} {
		for _, addr := range addrs {
			if _, err := ask(ctx, addr, codeCreateTopic, map[string]string{
				"topic": topic, "readQueueNums": "8", "writeQueueNums": "8", "order": "false", "perm": "6", "topicSysFlag": "0",
				"topicFilterType": "SINGLE_TAG", "defaultTopic": "TBW102", // RocketMQ's own template: the request must name one
			}); err != nil {
				return fmt.Errorf("cannot make topic %s: %w", topic, err)
			}
		}
		s.b.onEnd(func() error { return dropTopic(context.WithoutCancel(ctx), addrs, cfg.NameServers, topic) })
		// The broker tells the name servers beside its answer to us.
		if err := eventually(ctx, 10*time.Second, "the route of topic "+topic, func() bool {
			_, err := ask(ctx, cfg.NameServers[0], 105, map[string]string{"topic": topic})
			return err == nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func dropTopic(ctx context.Context, brokers, nameServers []string, topic string) error {
	var failed error
	for _, addr := range brokers {
		_, _ = ask(ctx, addr, codeDeleteGroup, map[string]string{"groupName": topic}) // there is none unless a worker ran
		_, err := ask(ctx, addr, codeDeleteInBroker, map[string]string{"topic": topic})
		failed = errors.Join(failed, err)
	}
	for _, addr := range nameServers {
		_, err := ask(ctx, addr, codeDeleteInNameSrv, map[string]string{"topic": topic})
		failed = errors.Join(failed, err)
	}
	return failed
}

// role starts a process of a role on a free port, and remembers where it listens.
func (s *shop) role(ctx context.Context, name, role string, set ...string) (*process, error) {
	args := append([]string{role}, s.b.opt.Args...)
	for _, pair := range append([]string{role + ".listen=127.0.0.1:0"}, set...) {
		if pair != "console.listen=127.0.0.1:0" {
			args = append(args, "--set", pair)
		}
	}
	p, err := s.b.start(ctx, name, s.env, args...)
	if err != nil {
		return nil, err
	}
	s.procs = append(s.procs, p)
	s.addr[name], s.b.meters.pids[name] = p.ready[role], p.pid()
	if file := p.ready["operator_token_file"]; file != "" {
		s.addr["operator"] = file
	}
	return p, nil
}

// embedded starts `floodgate serve`, which is every role in one process.
func (s *shop) embedded(ctx context.Context) error {
	s.env = without(s.env, "FLOODGATE_REDIS_", "FLOODGATE_MQ_", "FLOODGATE_DB_")
	p, err := s.b.start(ctx, "serve", s.env, "serve", "--set", "edge.listen=127.0.0.1:0", "--set", "notifier.listen=127.0.0.1:0",
		"--set", "worker.listen=127.0.0.1:0", "--set", "demo=false")
	if err != nil {
		return err
	}
	s.procs = append(s.procs, p)
	s.b.meters.pids["serve"] = p.pid()
	s.addr["edge"], s.addr["notifier"], s.addr["console"], s.addr["operator"] = p.ready["edge"], p.ready["notifier"], p.ready["console"], p.ready["operator_token_file"]
	return nil
}

func without(env []string, prefixes ...string) []string {
	var out []string
next:
	for _, e := range env {
		for _, p := range prefixes {
			if strings.HasPrefix(e, p) {
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}

// stop ends one process.
func (s *shop) stop(p *process) error {
	for i := range s.procs {
		if s.procs[i] == p {
			s.procs = append(s.procs[:i], s.procs[i+1:]...)
			break
		}
	}
	delete(s.b.meters.pids, p.name)
	return p.stop()
}

// close ends all processes, newest first, and takes the activities out of Redis.
func (s *shop) close(ctx context.Context) error {
	var failed error
	for len(s.procs) > 0 {
		failed = errors.Join(failed, s.stop(s.procs[len(s.procs)-1]))
	}
	for _, id := range s.sold {
		if s.ledger != nil {
			failed = errors.Join(failed, s.ledger.Drop(context.WithoutCancel(ctx), lua.Cell{Activity: id}))
		}
	}
	return failed
}

// operate calls the operators' API.
func (s *shop) operate(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr["console"]+"/admin/api"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	token, err := os.ReadFile(s.addr["operator"])
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	res, err := s.waiting.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: HTTP %d %s", method, path, res.StatusCode, got)
	}
	return json.Unmarshal(got, into)
}
