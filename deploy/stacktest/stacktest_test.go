package stacktest

import (
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestRedisIsDurable(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{Addr: Redis(t)})
	defer c.Close()
	for name, want := range map[string]string{"appendonly": "yes", "maxmemory-policy": "noeviction", "save": ""} {
		got, err := c.ConfigGet(t.Context(), name).Result()
		if err != nil || got[name] != want {
			t.Errorf("%s is %q (%v), want %q", name, got[name], err, want)
		}
	}
}

func TestMySQLGivesADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	var names [2]string
	for i := range names {
		db, err := sql.Open("mysql", MySQL(t))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("CREATE TABLE a (id BIGINT PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		if err := db.QueryRow("SELECT DATABASE()").Scan(&names[i]); err != nil {
			t.Fatal(err)
		}
	}
	if names[0] == names[1] {
		t.Errorf("both are %s", names[0])
	}
}

func TestTopicIsMadeAndDeleted(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("made", func(t *testing.T) {
		began := time.Now()
		name = Topic(t)
		t.Logf("%s took %v", name, time.Since(began))
		for _, topic := range []string{name, name + "_dead"} {
			if err := routed(NameServer(t), topic); err != nil {
				t.Errorf("%s: %v", topic, err)
			}
		}
	})
	if err := routed(NameServer(t), name); err == nil {
		t.Errorf("%s has a route after its test", name)
	}
}

// A private stack loses its parts and gets them back, with what Redis had; the shared stack stays untouched.
func TestOwnStackSurvivesKills(t *testing.T) {
	t.Parallel()
	var dir string
	t.Run("private", func(t *testing.T) {
		s := Own(t)
		dir = s.dir
		addr := s.Var("FLOODGATE_REDIS_ADDRS")
		if addr == Redis(t) {
			t.Fatal("the private Redis is the shared one")
		}
		c := redis.NewClient(&redis.Options{Addr: addr})
		defer c.Close()
		if err := c.Set(t.Context(), "a", "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{PartBroker, PartRedis, PartMariaDB, PartNameServer} {
			began := time.Now()
			s.Kill(part)
			s.Start(part)
			t.Logf("%s: killed and back in %v", part, time.Since(began))
		}
		if got, err := c.Get(t.Context(), "a").Result(); got != "1" {
			t.Errorf("after kill -9 a is %q (%v)", got, err)
		}
		if err := routed(s.Var("FLOODGATE_MQ_NAMESERVERS"), "floodgate_orders"); err != nil {
			t.Errorf("no route to the orders: %v", err)
		}
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", dir, err)
	}
}
