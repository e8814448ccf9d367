package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/history"
)

// placeLife is how long a node keeps a queue after somebody in it was last heard of.
const placeLife = 3 * time.Minute

// ofQueue tells that a key is a queue or its flag.
func ofQueue(key string) bool {
	return strings.HasPrefix(key, queuePrefix) || strings.HasPrefix(key, flagPrefix)
}

// amiss tells that there are faults, so that not everybody can leave the queues where
// he is in one.
func (w *world) amiss() bool { return len(remaining(w.plan)) > 0 }

// noQueues checks that nothing is left of any queue: when nobody waits any more, and
// nothing was amiss or all deadlines are over.
func (w *world) noQueues(since string) {
	for i, m := range w.servers() {
		for _, key := range m.Miniredis().Keys() {
			if ofQueue(key) {
				w.report(history.Violation{
					At: w.now(), Rule: Leftover, Key: key,
					Text: fmt.Sprintf("node %d still has %q after %s, though nobody waits", i+1, key, since),
				})
			}
		}
	}
}

// leftovers looks for keys when all ttls are over, in a long run long before, and for
// clients that still want some. What is in a queue is there for longer if its owner could
// not leave.
func (w *world) leftovers() {
	wait := w.patience() - patience + 2*longest
	if w.plan.Long {
		// Everything was released, and what was lost is cleaned up.
		wait = settled
	}
	since := w.now()
	time.Sleep(wait)
	for i, m := range w.servers() {
		for _, key := range m.Miniredis().Keys() {
			if key == markerKey {
				continue // it is to stay
			}
			if w.plan.Fencing && strings.HasPrefix(key, fencePrefix) {
				continue // for Config.FenceRetention
			}
			if ofQueue(key) && w.amiss() {
				continue // until its deadline
			}
			w.report(history.Violation{
				At: w.now(), Rule: Leftover, Key: key,
				Text: fmt.Sprintf("node %d still has %q, %v after the last release", i+1, key, wait),
			})
		}
	}
	// What was on its way at the last release has arrived, and each lock that
	// lives on is due to be renewed.
	time.Sleep(w.plan.longest())
	if w.amiss() {
		time.Sleep(placeLife + w.patience() - patience)
		w.noQueues("the last release")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.votes {
		if v.at > since+wait && !strings.HasPrefix(v.text, "release") && !strings.HasPrefix(v.text, "leave") {
			w.violations = append(w.violations, history.Violation{
				At: v.at, Rule: Quiet, Key: v.key,
				Text: fmt.Sprintf("client %d still sends to node %d, which says %q, though it has released everything", v.client+1, v.node+1, v.text),
			})
			return
		}
	}
}
