package model

// longWorlds are for runs by hand: go test ./model -run TestByHand -v -model.world=NAME. They put features together, or
// walk one in a bigger sale, with up to ten million states and 2.5 GiB; the biggest end unfinished there, and say so.
func longWorlds() []World {
	grown := func(name string, f Feature) World {
		return sale(name, func(w *World) { w.Grown = f })
	}
	open := func(name string, f Feature) World { // nothing is closed
		return sale(name, func(w *World) { w.Grown = f; w.Closes = 0 })
	}
	twice := func(w World) World {
		w.Failures = 2
		return w
	}
	pair := func(w World) World {
		w.Workers = 2
		return w
	}
	alone := func(w World) World {
		w.Users = []int{0}
		return w
	}
	return []World{
		sale("two-workers-same", func(w *World) { w.Users = []int{0, 0}; w.Workers = 2 }),
		grown("reconcile-close", Recoveries|Reconcile),
		grown("reconcile-paged-close", Recoveries|Reconcile|Paged),
		grown("zombie-close", Recoveries|Zombie),
		grown("skip-drain-close", SkipDrain),
		grown("stopped-edge-close", StoppedEdge),
		grown("add-lot-close", AddLot),
		grown("outcomes-close", Outcomes),
		twice(open("skip-drain-twice", SkipDrain)),
		twice(open("offsets-twice", Offsets)),
		twice(open("zombie-twice", Recoveries|Zombie)),
		twice(open("zombie-paged-twice", Recoveries|Zombie|Paged)),
		twice(open("reconcile-paged-twice", Recoveries|Reconcile|Paged)),
		twice(open("stopped-edge-twice", StoppedEdge)),
		open("offsets-stopped", Offsets|StoppedEdge),
		open("skip-stopped", SkipDrain|StoppedEdge),
		open("skip-offsets-stopped-zombie", SkipDrain|Offsets|StoppedEdge|Recoveries|Zombie),
		twice(open("skip-offsets-stopped", SkipDrain|Offsets|StoppedEdge)),
		open("add-lot-zombie-two", AddLot|Recoveries|Zombie),
		alone(grown("outcomes-zombie-alone", Outcomes|Recoveries|Zombie)),
		alone(twice(grown("outcomes-twice-alone", Outcomes))),
		pair(open("zombie-pair", Recoveries|Zombie|Offsets)),
		pair(open("skip-offsets-pair", SkipDrain|Offsets)),
		pair(alone(grown("forget-pair-alone", Outcomes|Forget))),
		alone(grown("forget-zombie-alone", Outcomes|Forget|Recoveries|Zombie)),
		alone(open("most-alone", Outcomes|Recoveries|Zombie|Offsets|StoppedEdge|SkipDrain|AddLot)),
		pair(alone(grown("everything-alone", Outcomes|Forget|Recoveries|Offsets|StoppedEdge|SkipDrain))),
	}
}
