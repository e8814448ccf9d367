package result

import "time"

// Contention is what a sample has beside its throughput where all callers want one
// key.
type Contention struct {
	// Alone is the median of acquisition and release in the same turn before the
	// others came.
	Alone time.Duration
	// Held is the mean from an acquisition to its release: timers are late, which is
	// not the lock's fault.
	Held time.Duration
	// Gap is from the call of Release to the return of Acquire at the next holder.
	Gap    Latency
	Passed float64 // the share of gaps after which it was not the same holder again
	Jain   float64 // the fairness of acquisitions among callers: 1 if all had the same
	// Longest is the longest from the call of Acquire to its return, or to the end of
	// the turn.
	Longest  time.Duration
	Commands float64 // that clients sent for each acquisition
}

// Idle is one measurement of callers who only wait, each for a key of its own that
// somebody else holds.
type Idle struct {
	Waiters    int
	For        time.Duration
	Settled    time.Duration // how long they had waited by then
	Cores      float64       // processor time of the client, user and system, by time
	PerSecond  float64       // commands that it sent, for each waiter
	WereServed int           // waiters who got what they waited for, though nobody had released it
}
