package mq_test

import (
	"log/slog"
	"testing"
	"time"

	"floodgate/deploy/stacktest"
	"floodgate/mq"
)

func TestRocketMQ(t *testing.T) {
	t.Parallel()
	conformance(t, func(t *testing.T) *driver {
		topic := stacktest.Topic(t)
		return rocket(t, mq.Config{Driver: "rocketmq", NameServers: []string{stacktest.NameServer(t)}, Topic: topic, Group: topic,
			SendTimeout: 5 * time.Second}) // a busy machine is no outage here
	})
}

// rocket is the driver on a real broker.
func rocket(t testing.TB, cfg mq.Config) *driver {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	p, err := mq.NewRocketProducer(cfg, logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	a, err := mq.NewRocketAdmin(cfg, logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return &driver{
		producer: p, backlog: a, letters: a, queues: 4,
		worker: func() mq.Consumer {
			c, err := mq.NewRocketConsumer(cfg, logger)
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		raw: func(t *testing.T, body string) {
			if err := p.SendRaw(t.Context(), body); err != nil {
				t.Fatal(err)
			}
		},
	}
}
