package result

import "time"

// Contention holds the additional figures of a sample in which all callers want one key.
type Contention struct {
	// Alone is the median time of acquisition and release in the same turn before the other
	// callers start.
	Alone time.Duration
	// Held is the mean time from an acquisition to its release. It is longer than Cell.Hold
	// because timers are late, not because of the lock.
	Held time.Duration
	// Gap is the time from the call of Release to the return of Acquire at the next holder.
	Gap    Latency
	Passed float64 // the share of gaps after which the holder was another one
	Jain   float64 // the fairness of acquisitions among callers: 1 if all had the same number
	// Longest is the longest time from the call of Acquire to its return, or to the end of the
	// turn.
	Longest  time.Duration
	Commands float64 // sent by clients for each acquisition
}

// Idle is one measurement of callers that only wait, each for its own key, which another
// client holds.
type Idle struct {
	Waiters    int
	For        time.Duration
	Settled    time.Duration // how long they had waited before the measurement
	Cores      float64       // processor time of the client, user and system, divided by time
	PerSecond  float64       // commands sent by each waiter
	WereServed int           // waiters that got a lock that was still held
}
