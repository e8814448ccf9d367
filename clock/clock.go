// Package clock provides time for the lock: the current time, timers, and the computation of
// how long a grant is valid.
//
// All times are measured on the monotonic clock. A time from a [Clock] of this package carries
// the monotonic reading of [time.Now]. Sub and Before compare that reading, so a step of the
// wall clock has no effect.
//
// Linux's monotonic clock stands still while the machine is suspended. A process that was
// suspended with its machine therefore believes that it holds a lock for as much longer as it
// slept. Only a fencing token, checked by the protected resource, stops such a holder.
package clock

import "time"

// A Clock tells the time and makes timers that run at its own speed. Its methods are safe for
// concurrent use.
type Clock interface {
	// Now returns the current time. It must carry a monotonic reading wherever the platform
	// has one, and must never run backwards.
	Now() time.Time
	// NewTimer sends the time on the timer's channel once, after d of this clock's own time.
	NewTimer(d time.Duration) Timer
	// AfterFunc runs f in its own goroutine after d of this clock's own time. The returned
	// timer's C is nil.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is like a [time.Timer], but runs at its clock's speed. Its methods are safe for
// concurrent use.
type Timer interface {
	// C returns the channel on which the timer ticks. The value may be another clock's time;
	// call Now for this clock's.
	C() <-chan time.Time
	// Reset starts the timer again, to fire after d of its clock's time. It reports whether
	// the timer had been running. As with time.Timer since Go 1.23, no value from before Reset
	// is received after it.
	Reset(d time.Duration) bool
	// Stop ends the timer. It reports whether the timer had been running.
	Stop() bool
}

// System returns the clock of the machine, from package time. Inside a testing/synctest bubble
// it is the bubble's virtual clock.
func System() Clock { return system{} }

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) NewTimer(d time.Duration) Timer {
	return systemTimer{time.NewTimer(d)}
}

func (system) AfterFunc(d time.Duration, f func()) Timer {
	return systemTimer{time.AfterFunc(d, f)}
}

type systemTimer struct{ *time.Timer }

func (t systemTimer) C() <-chan time.Time { return t.Timer.C }
