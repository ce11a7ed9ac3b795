//go:build race

package model

// mostStates cuts every search short: under the race detector only the walk itself is of interest, and whole worlds would
// take ten times as long. Worlds whose states are counted and are more are left out, the others may end unfinished.
const mostStates = 200_000
