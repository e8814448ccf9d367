package virtual

import (
	"time"

	"github.com/quorumlock/redlock/redlock"
)

// GuardFor is the Config.RestartGuard of Guarded.
const GuardFor = 10 * time.Second

// Guarded is a configuration with the restart guard.
var Guarded = redlock.Config{RestartGuard: GuardFor}

// Quarantine is how long the votes of a server that has just started do not count: the guard, a
// second for the granularity of its uptime, and the drift of the guard.
const Quarantine = GuardFor + time.Second + GuardFor/100 + 2*time.Millisecond
