package model

// grownTrials: each feature keeps every promise with all rules on, and each rule's removal breaks one. Worlds without
// a close or with one token are those where the feature's states would explode.
func grownTrials() []trial {
	grown := func(name string, f Feature) World {
		return sale(name, func(w *World) { w.Grown = f; w.Closes = 0 })
	}
	alone := func(name string, f Feature) World {
		return sale(name, func(w *World) { w.Grown = f; w.Users = []int{0} })
	}
	reconcile := grown("reconcile", Recoveries|Reconcile)
	paged := grown("reconcile-paged", Recoveries|Reconcile|Paged)
	zombie := grown("zombie", Recoveries|Zombie)
	offsets := grown("offsets", Offsets)
	skip := grown("skip-drain", SkipDrain)
	stopped := grown("stopped-edge", StoppedEdge)
	lot := grown("add-lot", AddLot)
	lot.RestartOnly = true
	lotZombie := alone("add-lot-zombie", AddLot|Recoveries|Zombie)
	lotZombie.RestartOnly, lotZombie.Closes = true, 0
	outcomes := alone("outcomes", Outcomes)
	forget := alone("forget", Outcomes|Forget)
	forget.Workers, forget.Failures = 2, 0
	return []trial{
		{world: sale("recoveries", func(w *World) { w.Grown = Recoveries })},
		{world: reconcile},
		{world: off(reconcile, ClearIdentity|BehindRecovers), breaks: NoOutcome},
		{world: paged},
		{world: off(paged, ClearIdentity), breaks: NoOutcome},
		{world: zombie},
		{world: grown("zombie-paged", Recoveries|Zombie|Paged)},
		{world: off(zombie, BehindRecovers), breaks: NoOutcome},
		{world: off(zombie, OnlyNewerWrites), breaks: NeverLive},
		{world: sale("offsets-close", func(w *World) { w.Grown = Offsets })},
		{world: offsets},
		{world: off(offsets, PlacedOffsets), breaks: ToldFailed},
		{world: off(offsets, EndAfterGrace), breaks: ToldFailed},
		{world: off(offsets, NeverLater|RetryEmpty), breaks: ToldFailed},
		{world: skip},
		{world: off(skip, NewestPresent), breaks: ToldFailed},
		{world: off(skip, EveryEdgeAnswers), breaks: ToldFailed},
		{world: stopped},
		{world: off(stopped, AskAgain), breaks: ToldFailed},
		{world: lot},
		{world: off(lot, LotWritten), breaks: Books},
		{world: lotZombie},
		{world: off(lotZombie, AnybodyNotices), breaks: Books},
		{world: off(lotZombie, LotEpoch), breaks: Books},
		{world: off(lotZombie, ReadUnderEpoch), breaks: Books},
		{world: outcomes},
		{world: off(outcomes, MarkWithRow), breaks: Books},
		{world: off(outcomes, ClearAfterScript), breaks: Books},
		{world: off(outcomes, ClearSameRow), breaks: Books},
		{world: off(outcomes, ReadAgain), breaks: NotHeard},
		{world: forget},
		{world: off(forget, ForgetReleased), breaks: Books},
		{world: off(forget, SameRecord), breaks: Books},
		{world: grown("forget-two", Outcomes|Forget)},
		{world: grown("forget-stopped-edge", Outcomes|Forget|StoppedEdge)},
	}
}

// longWorlds are for runs by hand: go test ./model -run TestByHand -v -model.world=NAME
func longWorlds() []World {
	grown := func(name string, f Feature) World {
		return sale(name, func(w *World) { w.Grown = f })
	}
	return []World{
		sale("two-workers-same", func(w *World) { w.Users = []int{0, 0}; w.Workers = 2 }),
		grown("reconcile-close", Recoveries|Reconcile),
		grown("reconcile-paged-close", Recoveries|Reconcile|Paged),
		grown("zombie-close", Recoveries|Zombie),
		grown("skip-drain-close", SkipDrain),
		grown("skip-drain-twice", SkipDrain),
		grown("stopped-edge-close", StoppedEdge),
		grown("add-lot-close", AddLot),
		grown("outcomes-close", Outcomes),
		grown("offsets-stopped", Offsets|StoppedEdge),
		sale("forget-alone-failure", func(w *World) { w.Grown = Outcomes | Forget; w.Users = []int{0}; w.Workers = 2 }),
	}
}
