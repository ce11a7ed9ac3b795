package notifier

import (
	"net/http"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"floodgate/sale"
)

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, miniredis.RunT(t).Addr(), func(c *Config, _ *times) { c.MaxPerUser, c.MaxConnections = 2, 4 })
	u := someID()
	one, two := s.login(u), s.login(u)
	third := s.dial(nil)
	third.say(`{"type":"auth","token":"` + s.jwt(u) + `"}`)
	third.closed(4009)
	third.ws.Close()
	eventually(t, "its place is free", func() bool { return s.n.metrics.open.Load() == 2 })

	s.login(someID())
	s.login(someID())
	if _, resp, err := s.try(nil); err == nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("the fifth connection: %v", err)
	}
	one.ws.Close()
	eventually(t, "a place is free", func() bool { return s.n.metrics.open.Load() == 3 })
	s.login(u)
	two.silent(s, u)
}

func TestWatchesAndSubscriptionsAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, miniredis.RunT(t).Addr(), func(c *Config, _ *times) { c.MaxWatches, c.MaxSubscriptions = 2, 1 })
	u := someID()
	c := s.login(u)
	tokens := []sale.Token{s.token(u), s.token(u), s.token(u)}
	var accepted [3]sale.Outcome
	for i, token := range tokens {
		accepted[i] = outcome(u, token, sale.Accepted)
		s.record(accepted[i])
		c.watch(token)
		if i < 2 {
			c.hearsOutcome(accepted[i])
		}
	}
	c.hears(`{"type":"error","code":"bad_request","requestToken":"` + string(tokens[2]) + `","message":"too many unfinished tokens watched on this connection"}`)
	paid := outcome(u, tokens[0], sale.Paid) // a finished one makes room
	s.publish(paid)
	c.hearsOutcome(paid)
	c.watch(tokens[2])
	c.hearsOutcome(accepted[2])

	s.setStock(11, 5, 1)
	c.subscribe(s.activity)
	c.hears(`{"type":"stock","activityId":"`+s.activity.String()+`","items":[{"commodityId":"11","remaining":5,"soldOut":false,"version":1}]}`, "at")
	c.subscribe(12)
	c.hears(`{"type":"error","code":"bad_request","activityId":"12","message":"too many subscriptions on this connection"}`)
}
