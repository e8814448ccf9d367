package sim

import (
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// hostClock is the clock of a machine that can stand still, as at SIGSTOP or in a long
// garbage collection: time goes on, and no timer fires until the machine wakes.
type hostClock struct {
	clock.Clock
	rate float64

	mu      sync.Mutex
	paused  bool
	overdue []*hostTimer          // in the order in which they should have fired
	asleep  bool                  // the machine is suspended
	begun   time.Time             // when the suspension began, by the clock without suspensions
	slept   time.Duration         // for how long the machine has been suspended in all
	last    time.Time             // when a timer was last set
	set     map[time.Duration]int // how many timers were set at that time, by their durations
}

func newHostClock(rate float64, offset time.Duration) *hostClock {
	return &hostClock{Clock: clock.Skewed(clock.System(), rate, offset), rate: rate, set: map[time.Duration]int{}}
}

// apart keeps timers apart that are set at one instant for the same instant, as those of a
// burst are: the seed does not decide in which order synctest fires them. It adds 3 ns for
// each, since a fast clock may round durations that differ by less to the same one. The
// clock's mu is held.
func (c *hostClock) apart(d time.Duration) time.Duration {
	if now := c.Clock.Now(); now != c.last {
		c.last = now
		clear(c.set)
	}
	c.set[d]++
	return d + time.Duration(c.set[d]-1)*3
}

// until returns how long it takes, in true time, until this clock shows t.
func (c *hostClock) until(t time.Time) time.Duration {
	return time.Duration(float64(t.Sub(c.Now())) / c.rate)
}

// Now returns what the clock shows. It stands still while the machine is suspended.
func (c *hostClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// now is Now. mu is held.
func (c *hostClock) now() time.Time {
	now := c.Clock.Now()
	if c.asleep {
		now = c.begun
	}
	return now.Add(-c.slept)
}

// suspend stops the clock. The next resume lets it go on.
func (c *hostClock) suspend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep, c.begun = true, c.Clock.Now()
}

func (c *hostClock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = true
}

// resume fires the overdue timers one after the other, with a moment in between so that a
// run can be repeated.
func (c *hostClock) resume() {
	c.mu.Lock()
	if c.asleep {
		c.asleep = false
		c.slept += c.Clock.Now().Sub(c.begun)
	}
	c.mu.Unlock()
	for {
		c.mu.Lock()
		if len(c.overdue) == 0 {
			c.paused = false
			c.mu.Unlock()
			return
		}
		t := c.overdue[0]
		c.overdue = c.overdue[1:]
		early := t.early()
		c.mu.Unlock()
		if early {
			continue
		}
		go t.f()
		time.Sleep(time.Microsecond)
	}
}

func (c *hostClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &hostTimer{clock: c, f: f}
	c.mu.Lock() // so that the timer, should it fire at once, finds it set
	defer c.mu.Unlock()
	t.due = c.now().Add(d)
	t.inner = c.Clock.AfterFunc(c.apart(d), t.fire)
	return t
}

func (c *hostClock) NewTimer(d time.Duration) clock.Timer {
	tick := make(chan time.Time, 1)
	t := &hostTimer{clock: c, tick: tick}
	t.f = func() {
		select {
		case tick <- c.Now():
		default:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.due = c.now().Add(d)
	t.inner = c.Clock.AfterFunc(c.apart(d), t.fire)
	return t
}

type hostTimer struct {
	clock *hostClock
	inner clock.Timer
	due   time.Time // by the host's clock
	f     func()
	tick  chan time.Time // nil for AfterFunc
}

func (t *hostTimer) fire() {
	t.clock.mu.Lock()
	wait := t.clock.paused
	if wait {
		t.clock.overdue = append(t.clock.overdue, t)
	} else {
		wait = t.early()
	}
	t.clock.mu.Unlock()
	if !wait {
		t.f()
	}
}

// early sets the timer again if the machine was suspended since it was set, so that it is not due yet.
// It reports whether that is so. The clock's mu is held.
func (t *hostTimer) early() bool {
	left := t.due.Sub(t.clock.now())
	if t.clock.slept == 0 || left <= 0 {
		return false
	}
	t.inner.Reset(left)
	return true
}

func (t *hostTimer) C() <-chan time.Time { return t.tick }

func (t *hostTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stop()
}

// stop leaves neither a timer nor a tick behind. The clock's mu is held.
func (t *hostTimer) stop() bool {
	running := t.inner.Stop()
	for i, o := range t.clock.overdue {
		if o == t {
			t.clock.overdue = append(t.clock.overdue[:i:i], t.clock.overdue[i+1:]...)
			return true
		}
	}
	select {
	case <-t.tick: // never ready for AfterFunc, whose channel is nil
	default:
	}
	return running
}

func (t *hostTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	running := t.stop()
	t.due = t.clock.now().Add(d)
	t.inner.Reset(t.clock.apart(d))
	return running
}
