package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAPausedClockFiresWhenItWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := newHostClock(1, time.Hour)
		fired := make(chan time.Duration, 2)
		for _, d := range []time.Duration{time.Second, 2 * time.Second} {
			c.AfterFunc(d, func() { fired <- time.Since(start).Truncate(time.Millisecond) })
		}
		tick := c.NewTimer(time.Second)
		never := c.NewTimer(time.Second)
		c.pause()
		time.Sleep(3 * time.Second)
		assert.Empty(t, fired)
		assert.Empty(t, tick.C())
		assert.True(t, never.Stop(), "the timer has not fired yet")
		assert.Equal(t, 3*time.Second, c.Now().Sub(start.Add(time.Hour)), "time goes on")

		c.resume()
		synctest.Wait()
		assert.Len(t, fired, 2)
		assert.Equal(t, 3*time.Second, <-fired)
		assert.Equal(t, 3*time.Second, <-fired)
		assert.Len(t, tick.C(), 1)
		assert.Empty(t, never.C())
	})
}

func TestAHostTimerIsATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newHostClock(2, 0) // two seconds of this clock are one second
		timer := c.NewTimer(2 * time.Second)
		start := time.Now()
		<-timer.C()
		assert.Equal(t, time.Second, time.Since(start))
		assert.False(t, timer.Stop())
		assert.False(t, timer.Reset(time.Second))
		time.Sleep(time.Second)
		assert.False(t, timer.Reset(time.Second), "the timer has fired")
		assert.Empty(t, timer.C(), "no earlier tick is left")
		<-timer.C()
		assert.True(t, c.AfterFunc(time.Second, func() { t.Error("a stopped timer fired") }).Stop())
		assert.Equal(t, time.Second, c.until(c.Now().Add(2*time.Second)))
	})
}
