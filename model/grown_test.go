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
	skipOffsets := grown("skip-offsets", SkipDrain|Offsets)
	skipStopped := grown("skip-stopped", SkipDrain|StoppedEdge)
	stopped := grown("stopped-edge", StoppedEdge)
	lot := grown("add-lot", AddLot)
	lot.RestartOnly = true
	lotZombie := alone("add-lot-zombie", AddLot|Recoveries|Zombie)
	lotZombie.Users = nil // no buyer is needed; long_test.go has them
	lotZombie.RestartOnly, lotZombie.Closes = true, 0
	outcomes := alone("outcomes", Outcomes)
	forget := alone("forget", Outcomes|Forget)
	forget.Workers, forget.Failures = 2, 0
	twice := func(w World) World {
		w.Name += "-twice"
		w.Failures = 2
		return w
	}
	drainTwice := twice(alone("zombie-alone", Recoveries|Zombie))
	drainTwice.Closes, drainTwice.Crashes = 0, 0
	undying := func(w World) World {
		w.Crashes = 0
		return w
	}
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
		{world: twice(skip)},
		{world: off(twice(skip), SkipLeavesMark|DropForgetsIDs), breaks: ToldFailed},
		{world: twice(skipOffsets)},
		{world: off(twice(skipOffsets), SkipLeavesMark), breaks: NoOutcome},
		{world: twice(skipStopped)},
		{world: off(undying(twice(skipStopped)), DropForgetsIDs), breaks: ToldFailed},
		{world: stopped},
		{world: twice(offsets)},
		{world: off(twice(offsets), AdoptCurrent), breaks: ToldFailed},
		{world: twice(stopped)},
		{world: off(twice(stopped), AdoptCurrent), breaks: ToldFailed},
		{world: drainTwice},
		{world: off(drainTwice, DrainUnderEpoch), breaks: NeverLive},
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
