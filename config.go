package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/goccy/go-yaml"

	"floodgate/console"
	"floodgate/edge"
	"floodgate/identity"
	"floodgate/mq"
	"floodgate/notifier"
	"floodgate/sql"
	"floodgate/worker"
)

// Config is the whole configuration, composed of what each part declares. A key is the path of `config` tags
// ("edge.listen"); later sources win: defaults, the file, the environment (FLOODGATE_EDGE_LISTEN), flags (--set edge.listen=…).
type Config struct {
	Data struct {
		Dir string `config:"dir" default:"data" help:"folder for the SQLite file, generated keys and the operator token"`
	} `config:"data"`
	Demo bool `config:"demo" default:"false" help:"buyers may log in by themselves (POST /api/demo/login); serve without a configuration turns it on"`
	Log  struct {
		Level string `config:"level" default:"info" help:"debug, info, warn or error"`
	} `config:"log"`
	Edge     edge.Config     `config:"edge"`
	Worker   worker.Config   `config:"worker"`
	Notifier notifier.Config `config:"notifier"`
	Console  console.Config  `config:"console"`
	Redis    redisConfig     `config:"redis"`
	MQ       mq.Config       `config:"mq"`
	DB       sql.Config      `config:"db"`
	Auth     identity.Config `config:"auth"`
	Internal struct {
		Key string `config:"key" secret:"true" help:"secret of at least 32 bytes that all processes share: it signs what they say to each other, and request tokens; serve makes one in data.dir"`
	} `config:"internal"`
	Payment struct {
		CallbackKey string `config:"callback_key" secret:"true" help:"kept for the payment provider's callback, which this version does not have"`
	} `config:"payment"`
	Webhook struct {
		URL string `config:"url" help:"kept for webhooks, which this version does not have: must be empty"`
		Key string `config:"key" secret:"true" help:"kept for webhooks, which this version does not have"`
	} `config:"webhook"`
	Limits struct {
		User    int `config:"user" default:"0" help:"kept for requests a second of one user, which this version does not limit: must be 0"`
		Address int `config:"address" default:"0" help:"kept for requests a second of one address, which this version does not limit: must be 0"`
		Global  int `config:"global" default:"0" help:"kept for requests a second in all, which this version does not limit: must be 0"`
	} `config:"limits"`
}

// redisConfig says where Redis is.
type redisConfig struct {
	Addrs    []string `config:"addrs" help:"host:port; several without redis.sentinel mean a Cluster; none: a Redis inside the process (serve only)"`
	Sentinel string   `config:"sentinel" help:"name of the master that the sentinels at redis.addrs watch"`
	Username string   `config:"username" help:"user of Redis's ACL"`
	Password string   `config:"password" secret:"true" help:"password of Redis"`
}

// usageError is a wrong command line or configuration: one line on stderr, exit code 2.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// load reads the configuration: defaults (and the command's own), the file (may be ""), the environment, and the flags' key=value pairs.
func load(own map[string]string, file string, environ, pairs []string) (Config, error) {
	var c Config
	all := settings(&c)
	byKey := map[string]setting{}
	for _, s := range all {
		byKey[s.key] = s
		fallback, ok := own[s.key]
		if !ok {
			fallback = s.fallback
		}
		if err := s.set(fallback, s.key); err != nil {
			return c, err
		}
	}
	if file != "" {
		if err := loadFile(file, byKey); err != nil {
			return c, err
		}
	}
	if err := loadEnv(environ, all); err != nil {
		return c, err
	}
	for _, p := range pairs {
		key, text, ok := strings.Cut(p, "=")
		if !ok {
			return c, usagef("--set %s: want key=value", p)
		}
		s, err := find(byKey, key, "--set")
		if err != nil {
			return c, err
		}
		if err := s.set(text, "--set "+key); err != nil {
			return c, err
		}
	}
	return c, c.check()
}

func loadFile(file string, byKey map[string]setting) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return usagef("cannot read the configuration: %v", err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return usagef("%s: %v", file, firstLine(yaml.FormatError(err, false, false)))
	}
	return eachLeaf(tree, "", byKey, func(key, value string) error {
		s, err := find(byKey, key, file)
		if err != nil {
			return err
		}
		return s.set(value, file+": "+key)
	})
}

// eachLeaf visits the values of a YAML tree by their dotted keys; lists are joined with commas.
func eachLeaf(tree map[string]any, prefix string, known map[string]setting, visit func(key, value string) error) error {
	keys := make([]string, 0, len(tree))
	for k := range tree {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		var err error
		switch v := tree[k].(type) {
		case map[string]any:
			err = eachLeaf(v, prefix+k+".", known, visit)
		case []any:
			texts := make([]string, len(v))
			for i := range v {
				texts[i] = fmt.Sprint(v[i])
			}
			err = visit(prefix+k, strings.Join(texts, ","))
		case nil:
			err = visit(prefix+k, "")
		default:
			err = visit(prefix+k, fmt.Sprint(v))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// notOurs are variables with our prefix that belong to the scripts and tests around the binary.
var notOurs = []string{"FLOODGATE_STACK_", "FLOODGATE_TEST_", "FLOODGATE_CRASHPOINT", "FLOODGATE_CONFIG"}

func loadEnv(environ []string, all []setting) error {
	byEnv := map[string]setting{}
	for _, s := range all {
		byEnv[s.env()] = s
	}
	for _, e := range environ {
		name, text, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "FLOODGATE_") || slices.ContainsFunc(notOurs, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		s, err := find(byEnv, name, "environment")
		if err != nil {
			return err
		}
		if err := s.set(text, name); err != nil {
			return err
		}
	}
	return nil
}

// find looks a key up; an unknown one is an error that names the nearest known one.
func find(known map[string]setting, key, where string) (setting, error) {
	if s, ok := known[key]; ok {
		return s, nil
	}
	nearest, best := "", -1
	for k := range known {
		if d := levenshtein.Distance(key, k, nil); best < 0 || d < best || d == best && k < nearest {
			nearest, best = k, d
		}
	}
	return setting{}, usagef("%s: unknown key %s: did you mean %s?", where, key, nearest)
}

// check refuses what no part checks itself, then asks the parts. Every command does it, so `config check` tells what a role would.
func (c *Config) check() error {
	var bad error
	switch {
	case !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level):
		bad = fmt.Errorf("log.level: %q is not debug, info, warn or error", c.Log.Level)
	case c.Data.Dir == "":
		bad = errors.New("data.dir: must name a folder")
	case c.Limits.User != 0 || c.Limits.Address != 0 || c.Limits.Global != 0:
		bad = errors.New("limits.user, limits.address, limits.global: this version has no rate limits: set them to 0")
	case c.Webhook.URL != "":
		bad = errors.New("webhook.url: this version sends no webhooks: leave it empty")
	case c.DB.Driver != sql.SQLite && c.DB.Driver != sql.MySQL:
		bad = fmt.Errorf("db.driver: %q is not mysql or sqlite", c.DB.Driver)
	case c.MQ.Driver == "table" && c.DB.Driver != sql.SQLite:
		bad = errors.New("mq.driver: table lives in the SQLite file, so it needs db.driver sqlite")
	case c.DB.Driver == sql.MySQL && c.DB.DSN == "":
		bad = errors.New("db.dsn: driver mysql needs user:password@tcp(host:port)/database")
	case c.DB.MaxOpen < 1 || c.DB.MaxOpen > 1000:
		bad = fmt.Errorf("db.max_open: is %d, want 1 to 1000", c.DB.MaxOpen)
	case c.Internal.Key != "" && len(c.Internal.Key) < 32:
		bad = errors.New("internal.key: want at least 32 bytes")
	default:
		served := c.Edge
		served.Workers = workerURLs(c.Edge.Workers)
		bad = errors.Join(served.Check(), c.Worker.Check(), c.Notifier.Check(), c.Console.Check(), c.MQ.Check(), c.Auth.Check())
	}
	if bad != nil {
		return usageError{bad}
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
