// Package live measures what locks cost that are only kept alive. They are held
// by a process of their own, so that its processor time and memory are the
// client's and nothing else's; the process that has started it looks at the
// masters meanwhile.
//
// The two talk over pipes. The child says, in JSON, that all locks are acquired;
// that the time is over, after which it waits for a byte before it releases them,
// so that the parent's look at the masters is between the two; and what it has
// found. When its standard input ends it gives up.
package live

import (
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// Plan is one measurement.
type Plan struct {
	Addrs []string      // host and port of each master
	Locks int           // to be held
	TTL   time.Duration // of each; it is renewed every third of it
	For   time.Duration // how long to look at them, soon after all are acquired
}

// message is what the child says: nothing but that it is so far, twice, and
// then the outcome. An error is its last.
type message struct {
	Error   string          `json:",omitempty"`
	Outcome *result.Renewal `json:",omitempty"`
}
