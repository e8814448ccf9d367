package waitqueue

import (
	"slices"
	"sync"

	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// Local holds the local queues of one Redlock. In each the callers that want one key wait, first
// come first served. Only the first caller asks the nodes, once the lock of the caller before it
// is over. So a Redlock has one entry in a key's queue on each node, and passes the lock on
// within itself while nobody else waits. W is the local queue's wait on the nodes, which outlives
// the caller that began it.
type Local[W any] struct {
	mu     sync.Mutex
	queues map[string]*localQueue[W]
}

// localQueue is the local queue for one key.
//
// The end of a caller's lock settles the reasons that were found before it: a caller that joins
// after that did not wait for them.
type localQueue[W any] struct {
	key     string
	callers []*Caller[W]
	lock    *LocalLock[W] // of a caller that was in the queue; nil: none of them has the key
	wait    *W            // nil: the queue does not wait on the nodes

	reason  error // why the callers wait: an attempt failed, or one of them has the key
	reasons int   // how many reasons were found so far; reason is the last
	settled int   // how many of them are settled
}

// Caller is one caller in a local queue.
type Caller[W any] struct {
	local   *Local[W]
	queue   *localQueue[W]
	first   chan struct{} // closed when the caller may go on; nil: it may from the start
	settled int           // how many reasons were settled when the caller joined
}

// LocalLock is the part of a lock that the local queue behind it needs.
type LocalLock[W any] struct {
	queue *localQueue[W] // nil: the lock did not come through a local queue
	over  bool
}

// NewLocal returns a Local without queues.
func NewLocal[W any]() *Local[W] { return &Local[W]{queues: map[string]*localQueue[W]{}} }

// Join adds a caller to the end of the queue for key.
func (l *Local[W]) Join(key string) *Caller[W] {
	c := &Caller[W]{local: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[key]
	if q == nil {
		q = &localQueue[W]{key: key}
		l.queues[key] = q
	} else {
		c.first = make(chan struct{})
	}
	c.queue, c.settled = q, q.settled
	q.callers = append(q.callers, c)
	return c
}

// First returns a channel that is closed when the caller is the first in the local queue, and no
// caller before it has the lock any more; nil if that was so from the start.
func (c *Caller[W]) First() <-chan struct{} { return c.first }

// Leave removes a caller without a lock. It returns the queue's wait, to be ended, if no caller is
// left, and otherwise nil.
func (c *Caller[W]) Leave() (last *W) {
	c.local.mu.Lock()
	defer c.local.mu.Unlock()
	q := c.queue
	i := slices.Index(q.callers, c)
	q.callers = slices.Delete(q.callers, i, i+1)
	if len(q.callers) == 0 {
		last, q.wait = q.wait, nil
	}
	if q.lock == nil && (i == 0 || len(q.callers) == 0) {
		c.local.goOn(q)
	}
	return last
}

// goOn lets the first caller ask the nodes. It removes an empty queue. The caller holds mu.
func (l *Local[W]) goOn(q *localQueue[W]) {
	if len(q.callers) == 0 {
		delete(l.queues, q.key)
		return
	}
	close(q.callers[0].first)
}

// Hold removes the first caller, as it has the lock. The next one goes on once that is over.
func (c *Caller[W]) Hold(lock *LocalLock[W]) {
	c.local.mu.Lock()
	defer c.local.mu.Unlock()
	q := c.queue
	q.callers = slices.Delete(q.callers, 0, 1)
	q.lock, lock.queue = lock, q
	q.waitsFor(errs.Held)
	if lock.over {
		c.local.pass(q)
	}
}

// Pass lets the queue behind a lock go on, as the lock is over. To call it again does nothing.
func (l *Local[W]) Pass(lock *LocalLock[W]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock.over = true
	if lock.queue != nil && lock.queue.lock == lock {
		l.pass(lock.queue)
	}
}

func (l *Local[W]) pass(q *localQueue[W]) {
	q.lock, q.settled = nil, q.reasons
	l.goOn(q)
}

// Wait returns the local queue's wait on the nodes; nil if there is none.
func (c *Caller[W]) Wait() *W {
	c.local.mu.Lock()
	defer c.local.mu.Unlock()
	return c.queue.wait
}

// SetWait replaces the local queue's wait on the nodes, which later callers take over.
func (c *Caller[W]) SetWait(w *W) {
	c.local.mu.Lock()
	defer c.local.mu.Unlock()
	c.queue.wait = w
}

// Failed records for all callers of the queue why the attempt of the first one failed.
func (c *Caller[W]) Failed(reason error) {
	c.local.mu.Lock()
	defer c.local.mu.Unlock()
	c.queue.waitsFor(reason)
}

func (q *localQueue[W]) waitsFor(reason error) {
	q.reason = reason
	q.reasons++
}

// Reason returns why the caller waits: why the last attempt of its local queue failed, or errs.Held
// if another caller has, or had, the key meanwhile. A reason that was found before the caller
// joined counts, unless it was settled by then. Reason returns nil if there is no such reason.
func (c *Caller[W]) Reason() error {
	c.local.mu.Lock()
	defer c.local.mu.Unlock()
	if c.queue.reasons > c.settled {
		return c.queue.reason
	}
	return nil
}
