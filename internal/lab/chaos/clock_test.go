//go:build linux

package chaos

import (
	"time"

	"golang.org/x/sys/unix"
)

// A trueTime reads the clock that all processes of a machine share, from an instant that they
// agree on.
type trueTime struct{ epoch time.Duration }

// monotonic returns the machine's CLOCK_MONOTONIC. The monotonic reading of time.Now is based
// on it too, but counts from a point that each process chooses for itself.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the kernel has had this clock for ever
	}
	return time.Duration(ts.Nano())
}

// now returns the time since the epoch.
func (c trueTime) now() time.Duration { return monotonic() - c.epoch }

// exact bounds the error of a conversion.
const exact = 100 * time.Microsecond

// of converts t to this clock, and never to a later instant. A hold that is recorded as too
// short causes no false accusation.
func (c trueTime) of(t time.Time) time.Duration {
	for {
		before := c.now()
		left := time.Until(t)
		if c.now()-before < exact {
			return before + left
		}
	}
}
