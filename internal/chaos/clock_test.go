//go:build linux

package chaos

import (
	"time"

	"golang.org/x/sys/unix"
)

// A trueTime reads the clock that all processes of a machine share, from an
// instant that they agree on.
type trueTime struct{ epoch time.Duration }

// monotonic is the machine's CLOCK_MONOTONIC. It is also what is behind the
// monotonic reading of time.Now, but that one counts from a point that each process
// chooses for itself.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the kernel has had this clock for ever
	}
	return time.Duration(ts.Nano())
}

// now is the time since the epoch.
func (c trueTime) now() time.Duration { return monotonic() - c.epoch }

// exact bounds the error of a conversion.
const exact = 100 * time.Microsecond

// of is when t is, on this clock, and never later than that: a hold that is taken
// for shorter than it was accuses nobody who is innocent.
func (c trueTime) of(t time.Time) time.Duration {
	for {
		before := c.now()
		left := time.Until(t)
		if c.now()-before < exact {
			return before + left
		}
	}
}
