package sim

import (
	"fmt"
	"slices"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// fencedKey is the key that clients take in turn when nothing fails any more.
const fencedKey = "fenced"

// calmFence has clients take one free key, for which nobody waits, in the order of their
// clocks. The client whose clock is furthest ahead begins, so the clock of each later one
// is below the fence. Each must get the key at its first attempt, with a higher token than
// the one before.
func (w *world) calmFence(alive []*client) {
	if !w.plan.Fencing {
		return
	}
	inTime := slices.DeleteFunc(slices.Clone(alive), func(c *client) bool {
		plan := w.plan.Clients[c.index]
		return plan.Rate < 1-plan.Drift.Factor // nothing is promised to such a client
	})
	slices.SortFunc(inTime, func(a, b *client) int { return b.clock.Now().Compare(a.clock.Now()) })
	last := int64(0)
	for _, c := range inTime {
		wrong := ""
		l, err := c.lock.TryAcquire(background, fencedKey, longest)
		switch {
		case err != nil:
			wrong = err.Error()
		case l.FencingToken() <= last:
			wrong = fmt.Sprintf("its token %d is not above %d", l.FencingToken(), last)
		}
		if wrong != "" {
			w.report(history.Violation{At: w.now(), Rule: Calm, Key: fencedKey, Text: fmt.Sprintf("client %d did not take a free key: %s", c.index+1, wrong)})
		}
		if l != nil {
			last = max(last, l.FencingToken())
			w.must(l.Release(background))
		}
		c.sleep(background, moment)
	}
}
