package report

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// figure formats v with three significant digits, and whole numbers in groups of three.
func figure(v float64) string {
	a := math.Abs(v)
	switch {
	case a == 0:
		return "0"
	case a < 0.1:
		return strconv.FormatFloat(v, 'f', 1-int(math.Floor(math.Log10(a))), 64)
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return whole(v)
}

// thousandths formats v with three digits after the point.
func thousandths(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// whole formats v without a fraction, in groups of three.
func whole(v float64) string {
	s := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	var b strings.Builder
	if v < 0 && s != "0" {
		b.WriteByte('-')
	}
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// durations formats a spread of nanoseconds in the unit that suits its median.
func durations(s spread) string {
	unit, name := unitOf(s.median)
	return s.text(func(v float64) string { return figure(v / unit) }, " "+name)
}

// unitOf returns the unit that suits this number of nanoseconds.
func unitOf(ns float64) (unit float64, name string) {
	switch {
	case ns < 999.5*float64(time.Microsecond):
		return float64(time.Microsecond), "µs"
	case ns < 999.5*float64(time.Millisecond):
		return float64(time.Millisecond), "ms"
	}
	return float64(time.Second), "s"
}

// counted returns n of what, with an s unless n is 1.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return whole(float64(n)) + " " + what
}

// short formats a round figure for a tick: 500, 20k, 1M.
func short(v float64) string {
	switch {
	case v >= 999_999:
		return rounded(v/1e6) + "M"
	case v >= 999.9:
		return rounded(v/1e3) + "k"
	}
	return rounded(v)
}

// nanoseconds formats a round time, such as a tick or a ttl: 50 µs, 1 ms.
func nanoseconds(v float64) string {
	if v == 0 {
		return "0"
	}
	unit, name := unitOf(v * 1.001) // 10^6 computed as a power may be a little less
	if unit == float64(time.Microsecond) && v < 999 {
		return rounded(v) + " ns"
	}
	return rounded(v/unit) + " " + name
}

// rounded formats a number that is round except for floating-point errors.
func rounded(v float64) string {
	if r := math.Round(v); math.Abs(v-r) < 1e-6*math.Max(1, r) {
		return whole(r)
	}
	return figure(v)
}
