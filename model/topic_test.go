package model

import "testing"

// TestTopic: two activities, one topic. Each rule's removal is noticed in the world that shows it.
func TestTopic(t *testing.T) {
	both := Topic{Name: "both lost", Messages: []int8{0, 1, 0, 1}, Lost: [2]bool{true, true}, Window: 2}
	cleaned := Topic{Name: "one is cleaned up", Messages: []int8{1, 0, 1, 0}, Lost: [2]bool{true, false}, Cleaned: [2]bool{false, true}, Window: 4}
	away := Topic{Name: "the other's Redis stays away", Messages: []int8{1, 1, 0, 1}, Dead: [2]bool{false, true}, Window: 2}
	wide := Topic{Name: "the same while this one recovers", Messages: []int8{1, 0, 1, 0}, Lost: [2]bool{true, false}, Dead: [2]bool{false, true}, Window: 4}
	cases := []struct {
		world   Topic
		without TopicRule
		breaks  string
	}{
		{both, 0, ""},
		{cleaned, 0, ""},
		{away, 0, ""},
		{wide, 0, ""},
		{both, AllWrittenFirst, ""}, // belt and braces: what is set aside holds no drain back
		{both, AllWrittenFirst | SetAside, NeverLive},
		{both, AsideCounts, EarlyLive},
		{cleaned, SettledByRow, NeverLive},
		{away, SetAside, NotPlaced},
		{wide, SetAside, NeverLive},
	}
	for _, c := range cases {
		c.world.Without = c.without
		t.Run(c.world.Name+without(uint64(c.without), topicRules), func(t *testing.T) {
			expect(t, c.world.Check(), c.breaks)
		})
	}
}
