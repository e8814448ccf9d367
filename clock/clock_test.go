package clock_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

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

// When its timer ticks, a skewed clock has reached the time that the timer was set for,
// whatever the rate. A lock that ends by such a timer therefore never ends early.
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

func TestSumSaturates(t *testing.T) {
	const most, least = time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
	for _, c := range []struct{ a, b, want time.Duration }{
		{0, 0, 0}, {1, 2, 3}, {1, -2, -1}, {most, 0, most}, {most, 1, most}, {most, most, most}, {most - 1, 1, most},
		{most, least, -1}, {least, 0, least}, {least, -1, least}, {least, least, least}, {least + 1, -1, least},
		{most, -1, most - 1}, {least, 1, least + 1},
	} {
		assert.Equal(t, c.want, clock.Sum(c.a, c.b), "%d + %d", c.a, c.b)
		assert.Equal(t, c.want, clock.Sum(c.b, c.a), "%d + %d", c.b, c.a)
	}
}

// A skewed clock runs forward, however large its offset and its rate.
func TestDriftForLeavesTheValidity(t *testing.T) {
	for _, d := range []clock.Drift{clock.DefaultDrift, {}, {Floor: 1}, {Factor: 0.05, Floor: time.Millisecond}, {Factor: 0.3}, {Factor: 0.999, Floor: time.Second}, {Factor: math.Nextafter(1, 0)}} {
		for _, v := range []time.Duration{math.MinInt64, -1, 0, 1, 2, 3, 333, time.Millisecond, time.Second + 1, time.Minute, 24 * time.Hour, 365 * 24 * time.Hour, 1<<53 - 1, 1 << 60, math.MaxInt64} {
			ttl := d.For(v)
			if left := clock.Validity(ttl, 0, d); ttl < math.MaxInt64 {
				assert.GreaterOrEqual(t, left, max(v, 0), "%+v %v", d, v)
				if v < 365*24*time.Hour && d.Factor < 0.5 {
					assert.LessOrEqual(t, left, max(v, 0)+time.Microsecond, "%+v %v", d, v)
				}
			}
		}
	}
	assert.Equal(t, time.Duration(math.MaxInt64), clock.DefaultDrift.For(math.MaxInt64))
	assert.Equal(t, time.Duration(math.MaxInt64), clock.Drift{Factor: 0.5}.For(math.MaxInt64/2+1))
}

func TestSkewedSaturates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			rate   float64
			offset time.Duration
		}{{1, math.MaxInt64}, {2, math.MaxInt64 - 1}, {1e300, 0}, {1e300, math.MaxInt64}, {1e300, -time.Hour}, {1, math.MinInt64}} {
			skewed := clock.Skewed(clock.System(), c.rate, c.offset)
			before := skewed.Now()
			time.Sleep(time.Hour)
			assert.False(t, skewed.Now().Before(before), "rate %v, offset %v: %v, then %v", c.rate, c.offset, before, skewed.Now())
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
