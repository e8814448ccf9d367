package clock_test

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// The oracle computes ttl − elapsed − (ttl·Factor + Floor) with exact rationals, which neither
// round nor overflow.
//
// A margin that is too small is dangerous: it gives more validity than a master with a fast
// clock grants. So the two bounds differ. Up to 2^53 ns a float64 holds the ttl exactly. The
// margin may then be below the exact one by its last rounding, half a nanosecond, and above it
// by that and the product's own rounding, a quarter. Beyond 2^53 ns, the two roundings of the
// product are one part in 2^52 together.
func FuzzValidity(f *testing.F) {
	for _, s := range []struct {
		ttl, elapsed time.Duration
		factor       float64
		floor        time.Duration
	}{
		{10 * time.Second, time.Second, 0.01, 2 * time.Millisecond},
		{300 * time.Millisecond, 600 * time.Millisecond, 0.01, 2 * time.Millisecond},
		{math.MaxInt64, 0, 0.999, math.MaxInt64},
		{math.MaxInt64, math.MinInt64, 0.5, 0},
		{math.MaxInt64, math.MaxInt64, math.Nextafter(1, 0), 1},
		{1, 1, 1e-300, 1},
		{1, 0, 0.5, 0},
		{3, 0, 0.3, 0},
		{1, 0, math.Nextafter(0.5, 0), 0},
		{1<<53 - 1, 0, math.Nextafter(1, 0), 0},
		{1<<53 + 1, 0, math.Nextafter(1, 0), 0},
		{1 << 52, 0, 0.5 + 1.0/(1<<52), 0},
		{-time.Second, 0, 0.5, time.Millisecond},
		{math.MinInt64, 1, 0.01, 2 * time.Millisecond},
		{time.Second, 0, math.NaN(), 0},
		{time.Second, 0, math.Copysign(0, -1), 0},
		{time.Second, 0, 1, 0},
		{time.Second, 0, 0.01, -1},
		{time.Second, 0, math.Inf(1), 0},
	} {
		f.Add(int64(s.ttl), int64(s.elapsed), s.factor, int64(s.floor))
	}
	f.Fuzz(func(t *testing.T, ttl, elapsed int64, factor float64, floor int64) {
		d := clock.Drift{Factor: factor, Floor: time.Duration(floor)}
		margin := int64(d.Of(time.Duration(ttl)))
		validity := int64(clock.Validity(time.Duration(ttl), time.Duration(elapsed), d))

		badFactor, badFloor := math.IsNaN(factor) || factor < 0 || factor >= 1, floor < 0
		err := d.Validate()
		if (err != nil) != (badFactor || badFloor) {
			t.Fatalf("%+v: Validate says %v", d, err)
		}
		if err != nil {
			named := badFactor && strings.Contains(err.Error(), "Drift.Factor") ||
				badFloor && strings.Contains(err.Error(), "Drift.Floor")
			if !named {
				t.Fatalf("%+v: %q does not name the field", d, err)
			}
			return // no validity is promised for it
		}

		part, below, above := new(big.Rat), new(big.Rat), new(big.Rat)
		if ttl > 0 {
			part.Mul(integer(ttl), new(big.Rat).SetFloat64(factor))
			below.SetFrac64(1, 2)
			above.SetFrac64(3, 4)
			if ttl > 1<<53 {
				inexact := new(big.Rat).Mul(part, new(big.Rat).SetFrac64(1, 1<<52))
				below.Add(below, inexact)
				above.Add(above, inexact)
			}
		}
		exact := new(big.Rat).Add(part, integer(floor))
		if least := sum(exact, below, -1); integer(margin).Cmp(least) < 0 && margin != math.MaxInt64 {
			t.Fatalf("a margin of %d is below %s", margin, exact.FloatString(3))
		}
		if margin == math.MaxInt64 {
			// Saturation is decided in floats, which are 2^10 apart there.
			above.Add(above, integer(1<<10))
		}
		if integer(margin).Cmp(sum(exact, above, 1)) > 0 {
			t.Fatalf("a margin of %d is far above %s", margin, exact.FloatString(3))
		}

		// Where the margin or a difference does not fit, the result is the nearest value that
		// fits. On both sides of zero, that error may only reduce the validity.
		left := sum(sum(integer(ttl), integer(elapsed), -1), exact, -1)
		if validity > 0 && integer(validity).Cmp(sum(left, below, 1)) > 0 {
			t.Fatalf("a validity of %d where %s is left", validity, left.FloatString(3))
		}
		fits := margin != math.MaxInt64 && elapsed >= 0
		if fits && validity != math.MinInt64 && integer(validity).Cmp(sum(left, above, -1)) < 0 {
			t.Fatalf("a validity of %d where %s is left", validity, left.FloatString(3))
		}
		if least := integer(math.MinInt64); validity == math.MinInt64 && left.Cmp(sum(least, above, 1)) > 0 {
			t.Fatalf("no validity where %s is left", left.FloatString(3))
		}

		// The validity is exactly ttl − elapsed − margin, computed as one saturating
		// difference after the other.
		want := clamp(new(big.Int).Sub(big.NewInt(ttl), big.NewInt(elapsed)))
		want = clamp(want.Sub(want, big.NewInt(margin)))
		if want.Int64() != validity {
			t.Fatalf("a validity of %d, not %s", validity, want)
		}
	})
}

func integer(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// sum returns a + sign·b.
func sum(a, b *big.Rat, sign int64) *big.Rat {
	b = new(big.Rat).Mul(b, integer(sign))
	return b.Add(a, b)
}

func clamp(x *big.Int) *big.Int {
	if !x.IsInt64() {
		if x.Sign() > 0 {
			return big.NewInt(math.MaxInt64)
		}
		return big.NewInt(math.MinInt64)
	}
	return x
}
