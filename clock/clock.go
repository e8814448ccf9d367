// Package clock owns time for the lock: the source of "now" and of timers, and
// the arithmetic that says how long a grant may be trusted.
//
// Everything here is measured on the monotonic clock. A time handed out by a
// [Clock] of this package carries the monotonic reading of [time.Now], so Sub
// and Before compare that reading and a step of the wall clock changes nothing.
//
// Linux's monotonic clock stands still while the machine is suspended. A
// process that is suspended together with its machine therefore believes in a
// lock for as long as it slept; only a fencing token, checked by the protected
// resource, stops such a holder.
package clock

import "time"

// A Clock tells the time and makes timers that run at its own speed. Its
// methods are safe for concurrent use.
type Clock interface {
	// Now is the current time. Its result must carry a monotonic reading
	// wherever the platform has one, and must never run backwards.
	Now() time.Time
	// NewTimer sends the time on the timer's channel once, after d of this
	// clock's own time.
	NewTimer(d time.Duration) Timer
	// AfterFunc runs f in a goroutine of its own after d of this clock's own
	// time. The returned timer's C is nil.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is a [time.Timer] that runs at its clock's speed. Its methods are safe for
// concurrent use.
type Timer interface {
	// C is the channel on which the timer ticks. What it sends may be another
	// clock's time: ask Now.
	C() <-chan time.Time
	// Reset starts the timer again, to fire after d of its clock's time. As
	// with time.Timer since Go 1.23, no value from before Reset is received
	// after it. It reports whether the timer had been running.
	Reset(d time.Duration) bool
	// Stop ends the timer; it reports whether the timer had been running.
	Stop() bool
}

// System is the clock of the machine, from package time. Inside a
// testing/synctest bubble it is the bubble's virtual clock.
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
