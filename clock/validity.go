package clock

import (
	"fmt"
	"math"
	"time"
)

// Drift is the margin that is subtracted from a grant's validity because the clocks of a
// client and of the masters do not run at the same speed: Factor times the ttl, plus Floor.
type Drift struct {
	Factor float64       // fraction of the ttl, at least 0 and below 1
	Floor  time.Duration // fixed part, not negative
}

// DefaultDrift is 1 % of the ttl plus 2 ms, as in the Redlock description
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/) and its first
// implementations. 1 % covers clocks four hundred times worse than the ±25 ppm of ordinary
// quartz. 2 ms covers Redis' granularity of expiry, 1 ms, on both ends.
var DefaultDrift = Drift{Factor: 0.01, Floor: 2 * time.Millisecond}

// Validate returns an error that names the field of d that is out of range, or nil.
func (d Drift) Validate() error {
	// NaN fails this comparison.
	if !(d.Factor >= 0 && d.Factor < 1) {
		return fmt.Errorf("Drift.Factor %v is not in [0, 1)", d.Factor)
	}
	if d.Floor < 0 {
		return fmt.Errorf("Drift.Floor %v is negative", d.Floor)
	}
	return nil
}

// Of returns the margin for a key that lives for ttl, to the nearest nanosecond. It saturates:
// a margin may be too large, but never too small. A ttl of zero or less has no proportional
// part.
func (d Drift) Of(ttl time.Duration) time.Duration {
	part := 0.0
	if ttl > 0 {
		// Exact to half a nanosecond for a ttl of up to 2^53 ns, 104 days. Beyond that a
		// float64 is off by at most one part in 2^52.
		part = math.Round(float64(ttl) * d.Factor)
	}
	if part >= math.MaxInt64-float64(d.Floor) {
		return math.MaxInt64
	}
	return time.Duration(part) + d.Floor
}

// For returns a ttl that leaves a validity after its margin: at least that much, and a few
// nanoseconds more. It saturates. A validity of zero or less counts as zero.
func (d Drift) For(validity time.Duration) time.Duration {
	ttl := math.Ceil((float64(max(validity, 0)) + float64(d.Floor)) / (1 - d.Factor))
	// The roundings here and in Of are off by two nanoseconds, and by two parts in 2^52 of the ttl.
	ttl += math.Ceil((2 + ttl*0x1p-51) / (1 - d.Factor))
	if ttl >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ttl)
}

// Validity returns how much of a grant is left to use: ttl − elapsed − drift. elapsed counts
// from before the first byte of the first request was sent, so no master can have started its
// countdown earlier. If the result is zero or less, the grant must not be used. The result
// saturates instead of wrapping around.
func Validity(ttl, elapsed time.Duration, drift Drift) time.Duration {
	return sub(sub(ttl, elapsed), drift.Of(ttl))
}

// Sum returns a + b. It saturates instead of wrapping around.
func Sum(a, b time.Duration) time.Duration {
	c := a + b
	if (c > a) == (b > 0) || b == 0 {
		return c
	}
	if b > 0 {
		return math.MaxInt64
	}
	return math.MinInt64
}

func sub(a, b time.Duration) time.Duration {
	c := a - b
	if (c < a) == (b > 0) || b == 0 {
		return c
	}
	if b > 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}
