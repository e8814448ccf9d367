// Package live measures the cost of locks that are only kept alive. Another process holds
// them, so that its processor time and memory are the client's alone. Its parent process
// examines the masters meanwhile.
//
// The two communicate over pipes. The child reports, in JSON, that all locks are acquired, and
// later that the time is over. Then it waits for a byte before it releases the locks, so that
// the parent can still examine the masters. Finally it reports its results. It gives up when
// its standard input ends.
package live

import (
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// Plan is one measurement.
type Plan struct {
	Addrs []string      // host and port of each master
	Locks int           // number of locks to hold
	TTL   time.Duration // of each lock, which is renewed every third of it
	For   time.Duration // how long to measure, soon after all locks are acquired
}

// message is what the child sends: an empty one when all locks are acquired, another when the
// time is over, and then the outcome. An error is its last message.
type message struct {
	Error   string          `json:",omitempty"`
	Outcome *result.Renewal `json:",omitempty"`
}
