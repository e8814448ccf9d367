package clock_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
)

func TestSystemTimesAreMonotonic(t *testing.T) {
	now := clock.System().Now()
	assert.NotEqual(t, now.Round(0), now, "Round(0) strips the monotonic reading, so it was there")
}

func TestSkewedRunsAtItsRate(t *testing.T) {
	for _, tc := range []struct {
		rate   float64
		offset time.Duration
		real   time.Duration
		want   time.Duration // since the start, on the skewed clock
	}{
		{1, 0, time.Second, time.Second},
		{2, 0, time.Second, 2 * time.Second},
		{0.5, 0, time.Second, 500 * time.Millisecond},
		{1.01, -time.Hour, 100 * time.Second, 101 * time.Second},
	} {
		t.Run(fmt.Sprint(tc.rate, tc.offset), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clock.Skewed(clock.System(), tc.rate, tc.offset)
				start := c.Now()
				assert.Equal(t, tc.offset, time.Until(start))
				time.Sleep(tc.real)
				assert.InDelta(t, float64(tc.want), float64(c.Now().Sub(start)), 2)
			})
		})
	}
}

func TestSkewedTimersFireAfterTheirOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Skewed(clock.System(), 2, time.Minute)
		begin := time.Now()
		timer := c.NewTimer(10 * time.Second)
		<-timer.C()
		assert.Equal(t, 5*time.Second, time.Since(begin))

		timer.Reset(4 * time.Second)
		<-timer.C()
		assert.Equal(t, 7*time.Second, time.Since(begin))

		ran := make(chan time.Duration, 1)
		f := c.AfterFunc(2*time.Second, func() { ran <- time.Since(begin) })
		assert.Equal(t, 8*time.Second, <-ran)
		assert.False(t, f.Stop(), "it has run")

		stopped := c.NewTimer(time.Second)
		assert.True(t, stopped.Stop())
		synctest.Wait()
		time.Sleep(time.Minute)
		select {
		case <-stopped.C():
			t.Error("a stopped timer fired")
		default:
		}
	})
}

// At its tick the skewed clock has reached the time the timer was set for,
// whatever the rate: a lock that ends by such a timer never ends early, and
// never notices its end before it came.
func TestSkewedTimerIsNeverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0.3, 0.99, 0.999999, 1, 1.000001, 1.01, 3, 7} {
			c := clock.Skewed(clock.System(), rate, 0)
			start := c.Now()
			<-c.NewTimer(12345678901 * time.Nanosecond).C()
			assert.GreaterOrEqual(t, c.Now().Sub(start)+time.Nanosecond, 12345678901*time.Nanosecond, "rate %v", rate)
		}
	})
}

func TestSkewedRefusesAClockThatStandsStill(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		assert.Panics(t, func() { clock.Skewed(clock.System(), rate, 0) })
	}
}

func TestDriftValidateNamesTheField(t *testing.T) {
	assert.NoError(t, clock.DefaultDrift.Validate())
	assert.NoError(t, clock.Drift{}.Validate())
	for _, f := range []float64{-5, -1e-9, 1, 2, math.NaN(), math.Inf(1), math.Inf(-1)} {
		assert.ErrorContains(t, clock.Drift{Factor: f}.Validate(), "Drift.Factor")
	}
	assert.ErrorContains(t, clock.Drift{Floor: -1}.Validate(), "Drift.Floor")
}

func TestValidityIsTtlMinusElapsedMinusDrift(t *testing.T) {
	d := clock.DefaultDrift
	assert.Equal(t, 8898*time.Millisecond, clock.Validity(10*time.Second, time.Second, d))
	assert.Equal(t, 102*time.Millisecond, d.Of(10*time.Second))
	assert.Negative(t, clock.Validity(300*time.Millisecond, 600*time.Millisecond, d), "case 6: expired on arrival")
	assert.Equal(t, 10*time.Second-3*time.Second, clock.Validity(10*time.Second, 3*time.Second, clock.Drift{}))
}

// The oracle computes with exact rationals: the margin is within a nanosecond and
// one part in 2^50 of it.
func FuzzValidity(f *testing.F) {
	f.Add(int64(10*time.Second), int64(time.Second), 0.01, int64(2*time.Millisecond))
	f.Add(int64(math.MaxInt64), int64(0), 0.999, int64(math.MaxInt64))
	f.Add(int64(math.MaxInt64), int64(math.MinInt64), 0.5, int64(0))
	f.Add(int64(1), int64(1), 1e-300, int64(1))
	f.Fuzz(func(t *testing.T, ttl, elapsed int64, factor float64, floor int64) {
		d := clock.Drift{Factor: factor, Floor: time.Duration(floor)}
		if d.Validate() != nil || ttl < 0 {
			return
		}
		exact := new(big.Rat).Mul(new(big.Rat).SetInt64(ttl), new(big.Rat).SetFloat64(factor))
		exact.Add(exact, new(big.Rat).SetInt64(floor))

		got := d.Of(time.Duration(ttl))
		slack := new(big.Rat).SetFrac64(ttl, 1<<50)
		slack.Add(slack, new(big.Rat).SetInt64(1))
		if got != math.MaxInt64 {
			least := new(big.Rat).Sub(exact, slack)
			require.GreaterOrEqual(t, new(big.Rat).SetInt64(int64(got)).Cmp(least), 0, "margin %d below %s", got, exact)
		}
		require.LessOrEqual(t, new(big.Rat).SetInt64(int64(got)).Cmp(slack.Add(slack, exact)), 0, "margin %d far above %s", got, exact)

		want := new(big.Int).Sub(big.NewInt(ttl), big.NewInt(elapsed))
		want = clamp(want)
		want = clamp(want.Sub(want, big.NewInt(int64(got))))
		require.Equal(t, want.Int64(), int64(clock.Validity(time.Duration(ttl), time.Duration(elapsed), d)))
	})
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
