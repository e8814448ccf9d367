package cli

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// Duration is the value of a flag: a number of seconds, as flock(1) and timeout(1) take it, or a
// duration as Go writes it.
type Duration time.Duration

func (d *Duration) Set(s string) error {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		// A fraction that a float cannot hold is rounded to a nanosecond.
		if ns := seconds * float64(time.Second); math.Abs(ns) < math.MaxInt64 {
			*d = Duration(math.Round(ns))
			return nil
		}
		return errors.New("is out of range")
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("want seconds, or a number with a unit: 90, 1m30s, 500ms")
	}
	*d = Duration(parsed)
	return nil
}

func (d *Duration) String() string { return time.Duration(*d).String() }
func (d *Duration) Type() string   { return "duration" }
