//go:build !crashpoints

// Package crashpoint names the instants at which a process may be killed in tests. In a normal build At is empty and is
// inlined away; with the build tag `crashpoints` a process kills itself (SIGKILL, nothing deferred runs) where
// FLOODGATE_CRASHPOINT says, e.g. "edge.reserved:3" for the third time that the point is passed.
package crashpoint

// At marks a point. The points: edge.reserved, edge.enqueued, worker.placed, worker.committed.
func At(string) {}
