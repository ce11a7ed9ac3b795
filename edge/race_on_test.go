//go:build race

package edge

// The race detector makes sync.Pool forget at random, so allocations are not counted under it.
const raceEnabled = true
