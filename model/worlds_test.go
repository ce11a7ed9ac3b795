package model

// trial is a world, how many states it must have (0: not fixed), and the promise that breaks, "" where none.
type trial struct {
	world  World
	states int
	breaks string
}

// sale is the world that the others vary: two users, one unit, one worker, and one death, one failure, one close.
func sale(name string, change func(*World)) World {
	w := World{Name: name, Users: []int{0, 1}, Total: 1, Workers: 1, Crashes: 1, Failures: 1, Closes: 1}
	if change != nil {
		change(&w)
	}
	return w
}

func off(w World, rules Rule) World {
	w.Without = rules
	return w
}

// portTrials have exactly as many states as the first version of this check, written in another language.
func portTrials() []trial {
	one := sale("one", nil)
	twice := sale("twice", func(w *World) { w.Failures = 2 })
	return []trial{
		{sale("two-workers", func(w *World) { w.Workers = 2 }), 1_875_950, ""},
		{one, 191_224, ""},
		{sale("same", func(w *World) { w.Users = []int{0, 0} }), 191_224, ""},
		{sale("three", func(w *World) { w.Users = []int{0, 0, 1} }), 568_349, ""},
		{sale("total2", func(w *World) { w.Total = 2 }), 648_926, ""},
		{sale("restart-only", func(w *World) { w.RestartOnly = true }), 111_462, ""},
		{sale("no-failure", func(w *World) { w.Failures, w.Workers = 0, 2 }), 20_377, ""},
		{sale("three-no-failure", func(w *World) { w.Users = []int{0, 0, 1}; w.Failures = 0 }), 6_643, ""},
		{sale("twice-restart-only", func(w *World) { w.Failures = 2; w.RestartOnly = true }), 583_284, ""},
		{twice, 1_300_816, ""},
		// The one double fault that is left: the queue refuses, and Redis then loses its disk.
		{sale("queue-fails", func(w *World) { w.QueueFails = true }), 232_656, NoOutcome},
		{off(one, Fence), 242_866, Books},
		{off(one, Adopt), 211_608, Books},
		{off(one, Drain), 169_243, ToldFailed},
		{off(one, Returned), 191_224, Books},
		{off(one, ClaimCheck), 220_966, ""}, // belt and braces
		{off(twice, LiveCheck), 1_102_366, Books},
		{off(twice, DropStale), 1_306_354, ToldFailed},
	}
}
