package main

import "slices"

// ailing are bugs through which some clients stop the others as long as they are sick.
var ailing = slices.Concat(
	inTrial("days-apart",
		bug{"clock-followed-slowly", "a client follows a clock that is ahead by only one second at a time", one(tickets,
			"	t.base += ticket - ours + 1\n", "	t.base += min(ticket-ours+1, 1e6)\n")},
	),
	inTrial("foreign",
		bug{"foreigners-unseen", "a waiter never notices that clients of other libraries take the key and wake nobody", one("redlock/internal/waitqueue/foreign.go",
			"	return !f.seen.IsZero() && now.Sub(f.seen) < foreignFor\n", "	return false\n")},
	),
)

// inTrial returns mutants whose runs end with a trial.
func inTrial(kind string, bugs ...bug) []mutant {
	return in(bugs, "--for", "200ms", "--clients", "2", "--faults", kind)
}
