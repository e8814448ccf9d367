package demo

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/redlock"
)

const (
	// answersWait bounds the wait for the last node of a round: a lane gives up
	// on a silent node after twice the node timeout.
	answersWait = 3 * masterlist.NodeTimeout

	// releasedWait bounds the wait for the last answers to a release, which stays pending for a
	// silent node until the key's ttl is over. The wait begins when a majority has answered.
	releasedWait = masterlist.NodeTimeout / 4
)

// recorder finds the trace of the one operation that is being watched among all traces of a
// Redlock. Clean-ups and late releases are traced too.
type recorder struct {
	mu   sync.Mutex
	op   string
	next chan redlock.Trace // has room for that trace; nil if none is expected
}

// expect starts to watch for the next trace of op. Call it before the operation starts.
func (r *recorder) expect(op string) <-chan redlock.Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.op, r.next = op, make(chan redlock.Trace, 1)
	return r.next
}

// record is a redlock.Config.Trace. It never blocks.
func (r *recorder) record(t redlock.Trace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil && t.Op == r.op {
		r.next <- t
		r.next = nil
	}
}

// await waits for a trace, which comes when every node has answered. It reports whether it came in
// time.
func await(ctx context.Context, traced <-chan redlock.Trace, wait time.Duration) (redlock.Trace, bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case t := <-traced:
		return t, true
	case <-timer.C:
	case <-ctx.Done():
	}
	return redlock.Trace{}, false
}
