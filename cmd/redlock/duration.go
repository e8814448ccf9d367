package main

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// duration is the value of a flag as flock(1) and timeout(1) take it, a number of seconds,
// or as Go does.
type duration time.Duration

func (d *duration) Set(s string) error {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		// A fraction that a float cannot hold is rounded to a nanosecond.
		if ns := seconds * float64(time.Second); math.Abs(ns) < math.MaxInt64 {
			*d = duration(math.Round(ns))
			return nil
		}
		return errors.New("is out of range")
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("want seconds, or a number with a unit: 90, 1m30s, 500ms")
	}
	*d = duration(parsed)
	return nil
}

func (d *duration) String() string { return time.Duration(*d).String() }
func (d *duration) Type() string   { return "duration" }
