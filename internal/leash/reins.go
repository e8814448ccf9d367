package leash

import "time"

// reins decides when to ask a command to end, and when to kill it. It sends no signals itself.
type reins struct {
	grace, margin time.Duration
	killAt        time.Time // when to kill a command that was asked to end; zero before it is asked
}

type act int

const (
	wait act = iota
	ask
	kill
)

// due returns the action to take now, and the time to call it again.
func (r *reins) due(now, until time.Time, lost bool) (act, time.Time) {
	killAt, askAt := until.Add(-r.margin), until.Add(-r.grace)
	asks := r.grace > r.margin
	if !r.killAt.IsZero() {
		killAt, asks = r.killAt, false
	}
	switch {
	case lost, !now.Before(killAt):
		return kill, now
	case !asks:
		return wait, killAt
	case !now.Before(askAt):
		return ask, killAt
	}
	return wait, askAt
}

// asked records that the command was asked to end, as the lease ends at until. The command is
// killed before that time even if the lease is renewed later, as it must not take for ever to
// end.
func (r *reins) asked(until time.Time) { r.killAt = until.Add(-r.margin) }
