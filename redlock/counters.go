package redlock

import "sync/atomic"

// counters are what Stats returns. Acquisitions of many callers change them, so they are few.
type counters struct {
	held, waiting                       atomic.Int64
	acquired, refused, noQuorum, failed atomic.Int64
	waitCount, waitDuration             atomic.Int64
	released, lostNotHeld, lostExpired  atomic.Int64
	renewed, renewalsFailed             atomic.Int64
}

// ended counts the end of a lock, once for each.
func (c *counters) ended(cause error) {
	switch cause {
	case ErrNotHeld:
		c.lostNotHeld.Add(1)
	case ErrExpired:
		c.lostExpired.Add(1)
	default:
		c.released.Add(1)
	}
}

// renewal counts a renewal.
func (c *counters) renewal(err error) {
	if err == nil {
		c.renewed.Add(1)
	} else {
		c.renewalsFailed.Add(1)
	}
}
