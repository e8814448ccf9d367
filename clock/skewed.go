package clock

import (
	"fmt"
	"math"
	"time"
)

// Skewed returns a clock that starts at offset from base and runs rate times as fast: at rate
// 2 it gains a second each second, at rate 0.5 it loses half a second. A timer of d on it
// fires after d/rate of base's time. Simulations use it to give each client its own clock.
//
// Skewed panics if rate is not a finite number above 0: a clock that stands still or runs
// backwards is a programming error.
func Skewed(base Clock, rate float64, offset time.Duration) Clock {
	if !(rate > 0) || math.IsInf(rate, 1) {
		panic(fmt.Sprintf("clock: rate %v of a skewed clock is not a positive number", rate))
	}
	return &skewed{base: base, rate: rate, offset: offset, origin: base.Now()}
}

type skewed struct {
	base   Clock
	rate   float64
	offset time.Duration
	origin time.Time // base's time when the skewed clock was made
}

// Now adds to the origin instead of computing a wall time, because Add keeps the monotonic
// reading. Two times of one skewed clock therefore subtract monotonically.
func (s *skewed) Now() time.Time {
	passed := float64(s.base.Now().Sub(s.origin))
	return s.origin.Add(Sum(s.offset, saturate(passed*s.rate)))
}

func (s *skewed) NewTimer(d time.Duration) Timer {
	return skewedTimer{s.base.NewTimer(s.toBase(d)), s}
}

func (s *skewed) AfterFunc(d time.Duration, f func()) Timer {
	return skewedTimer{s.base.AfterFunc(s.toBase(d), f), s}
}

// toBase returns how long base must run for d to pass on s. It rounds up: a timer may be late,
// but when it ticks, s has reached the time that the timer was set for.
func (s *skewed) toBase(d time.Duration) time.Duration {
	return saturate(math.Ceil(float64(d) / s.rate))
}

// saturate returns ns nanoseconds, or the nearest duration.
func saturate(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(ns, math.MinInt64))
}

type skewedTimer struct {
	Timer
	clock *skewed
}

func (t skewedTimer) Reset(d time.Duration) bool { return t.Timer.Reset(t.clock.toBase(d)) }
