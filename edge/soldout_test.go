package edge

import "testing"

// What was said of an older state is ignored, also by a Redis whose versions begin anew under a later epoch; asking for more
// than is left sells nothing out.
func TestOlderNewsOfTheStockIsIgnored(t *testing.T) {
	t.Parallel()
	s, err := newSoldOut()
	must(t, err)
	t.Cleanup(s.close)
	for number, c := range []struct {
		what string
		news [][3]int64 // epoch, version, remaining
		want bool
	}{
		{"nothing left", [][3]int64{{1, 1, 0}}, true},
		{"something left", [][3]int64{{1, 1, 3}}, false},
		{"stock was added", [][3]int64{{1, 1, 0}, {1, 2, 5}}, false},
		{"sold out before stock was added, heard late", [][3]int64{{1, 2, 5}, {1, 1, 0}}, false},
		{"stock before it was sold out, heard late", [][3]int64{{1, 2, 0}, {1, 1, 5}}, true},
		{"a later epoch begins at a lower version", [][3]int64{{1, 9, 5}, {2, 0, 0}}, true},
		{"an older epoch with a higher version", [][3]int64{{2, 0, 5}, {1, 9, 0}}, false},
	} {
		item := &till{number: uint64(number)}
		for _, n := range c.news {
			s.learn(item, n[0], n[1], n[2])
			s.cache.Wait() // a Set is applied later
		}
		if got := s.has(item); got != c.want {
			t.Errorf("%s: sold out is %v, want %v", c.what, got, c.want)
		}
	}
}
