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

	// releasedWait is for a release, which is owed to a silent node until the
	// key's ttl is over. It begins when a majority has answered.
	releasedWait = masterlist.NodeTimeout / 4
)

// recorder picks the trace of the one operation that is being watched out of
// those that a Redlock reports. Clean-ups and late releases report too.
type recorder struct {
	mu   sync.Mutex
	op   string
	next chan redlock.Trace // has room for the one trace; nil: nothing is expected
}

// expect watches for the next trace of op. Call it before the operation starts.
func (r *recorder) expect(op string) <-chan redlock.Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.op, r.next = op, make(chan redlock.Trace, 1)
	return r.next
}

// record is a redlock.Config.Trace: it never blocks.
func (r *recorder) record(t redlock.Trace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil && t.Op == r.op {
		r.next <- t
		r.next = nil
	}
}

// await reports whether every node has answered in time.
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
