package mq

import (
	"strings"
	"testing"
	"time"
)

func TestConfigCheck(t *testing.T) {
	refused := func(c Config, key string) {
		t.Helper()
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), "mq."+key+": ") {
			t.Errorf("%+v: %v, want a complaint about mq.%s", c, err, key)
		}
	}
	good := Config{Driver: "rocketmq", NameServers: []string{"127.0.0.1:9876"}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	if err := (Config{Driver: "table"}).Check(); err != nil {
		t.Error(err)
	}
	with := func(change func(*Config)) Config { c := good; change(&c); return c }
	refused(with(func(c *Config) { c.Driver = "kafka" }), "driver")
	refused(with(func(c *Config) { c.NameServers = nil }), "nameservers")
	refused(with(func(c *Config) { c.NameServers = []string{"127.0.0.1"} }), "nameservers")
	refused(with(func(c *Config) { c.Topic = "orders of today" }), "topic")
	refused(with(func(c *Config) { c.Group = strings.Repeat("g", 101) }), "group")
	refused(with(func(c *Config) { c.SendTimeout = time.Minute }), "send_timeout")
	refused(with(func(c *Config) { c.ConsumeBatch = 5000 }), "consume_batch")
	refused(with(func(c *Config) { c.Probe = time.Hour }), "probe")
}
