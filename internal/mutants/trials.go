package main

import "slices"

// ailing are bugs by which some clients stop the others for as long as they are sick.
var ailing = slices.Concat(
	inTrial("days-apart",
		bug{"clock-followed-slowly", "a client goes by another's clock a second at a time, however far that is ahead", one(tickets,
			"	t.base += ticket - ours + 1\n", "	t.base += min(ticket-ours+1, 1e6)\n")},
	),
	inTrial("foreign",
		bug{"foreigners-unseen", "a waiter never notices that others take the key and wake nobody", one("redlock/foreign.go",
			"	return !f.seen.IsZero() && now.Sub(f.seen) < foreignFor\n", "	return false\n")},
	),
)

// inTrial has the runs end with a trial.
func inTrial(kind string, bugs ...bug) []mutant {
	return in(bugs, "--for", "200ms", "--clients", "2", "--faults", kind)
}
