package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// queueLife is how long a node keeps a queue after it last heard from a waiter in it.
const queueLife = 3 * time.Minute

// ofQueue reports whether a key is a queue or its flag.
func ofQueue(key string) bool {
	return strings.HasPrefix(key, queuePrefix) || strings.HasPrefix(key, flagPrefix)
}

// amiss reports whether the run has faults, so that some waiters may not have been able to
// leave their queues.
func (w *world) amiss() bool { return len(remaining(w.plan)) > 0 }

// noQueues checks that nothing is left of any queue. It is called when nobody waits any
// more, and either nothing was amiss or all deadlines are over.
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

// leftovers looks for keys when all ttls are over (in a long run, long before), and for
// clients that still acquire or extend. A queue may stay longer if a waiter could not leave
// it.
func (w *world) leftovers() {
	wait := w.patience() - patience + 2*longest
	if w.plan.Long {
		// Every lock was released, and every lost release has been sent again.
		wait = settled
	}
	since := w.now()
	time.Sleep(wait)
	for i, m := range w.servers() {
		for _, key := range m.Miniredis().Keys() {
			if key == recordKey {
				continue // the identity record stays
			}
			if w.plan.Fencing && strings.HasPrefix(key, fencePrefix) {
				continue // fences stay for Config.FenceRetention
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
	// After this sleep everything that was under way at the last release has arrived, and
	// each lock that lives on is due to be renewed.
	time.Sleep(w.plan.longest())
	if w.amiss() {
		time.Sleep(queueLife + w.patience() - patience)
		w.noQueues("the last release")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.votes {
		if v.at > since+wait && !strings.HasPrefix(v.text, "release") && !strings.HasPrefix(v.text, "dequeue") {
			w.violations = append(w.violations, history.Violation{
				At: v.at, Rule: Quiet, Key: v.key,
				Text: fmt.Sprintf("client %d still sends to node %d, which says %q, though it has released everything", v.client+1, v.node+1, v.text),
			})
			return
		}
	}
}
