package leash

import "time"

// reins decide what is due to a command when; they do nothing themselves.
type reins struct {
	grace, margin time.Duration
	killAt        time.Time // of a command that was asked to end; zero: as the lease says
}

type act int

const (
	wait act = iota
	ask
	kill
)

// due is what is to be done now, and if nothing is, when to look again.
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

// asked takes note that the command was asked to end. It is killed when its lease would have
// been over then, even if that has moved on since: it is ending, and may not do so for ever.
func (r *reins) asked(until time.Time) { r.killAt = until.Add(-r.margin) }
