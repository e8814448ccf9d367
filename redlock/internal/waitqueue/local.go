package waitqueue

import (
	"slices"
	"sync"

	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// Local is the local queues of one Redlock: its callers that want the same key, first come first
// served. Only the first of a queue asks the nodes, once the lock of the caller before it is
// over. So a process has one entry in a key's queue on each node, and passes the lock on within
// itself while nobody else waits. W is the queue's wait on the nodes, which outlives the caller
// that began it.
type Local[W any] struct {
	mu     sync.Mutex
	queues map[string]*localQueue[W]
}

// localQueue is the callers that want one key.
type localQueue[W any] struct {
	key     string
	callers []*Caller[W]
	holder  *Holder[W] // the lock of a caller; nil: no caller has the key
	wait    *W         // nil: the queue does not wait on the nodes

	reason  error // why the callers wait: an attempt failed, or one of them has the key
	reasons int   // how often a reason was found
	settled int   // reasons when the last holder's lock was over
}

// Caller is one caller in a local queue.
type Caller[W any] struct {
	local   *Local[W]
	queue   *localQueue[W]
	first   chan struct{} // closed when the caller is first; nil: it was from the start
	settled int           // of the queue when the caller joined
}

// Holder is the part of a lock that the queue behind it needs.
type Holder[W any] struct {
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

// First returns a channel that is closed when the caller is the first, and nobody here has the
// lock; nil if it was from the start.
func (c *Caller[W]) First() <-chan struct{} { return c.first }

// Leave removes a caller without a lock. If the queue is empty then, Leave returns its wait, which
// the caller must end; otherwise nil.
func (c *Caller[W]) Leave() (last *W) {
	c.local.mu.Lock()
	defer c.local.mu.Unlock()
	q := c.queue
	i := slices.Index(q.callers, c)
	q.callers = slices.Delete(q.callers, i, i+1)
	if len(q.callers) == 0 {
		last, q.wait = q.wait, nil
	}
	if q.holder == nil && (i == 0 || len(q.callers) == 0) {
		c.local.goOn(q)
	}
	return last
}

// goOn lets the first caller go, and removes an empty queue. The caller holds mu.
func (l *Local[W]) goOn(q *localQueue[W]) {
	if len(q.callers) == 0 {
		delete(l.queues, q.key)
		return
	}
	close(q.callers[0].first)
}

// Hold removes the first caller, as it has the lock. The next is first once that is over.
func (c *Caller[W]) Hold(h *Holder[W]) {
	c.local.mu.Lock()
	defer c.local.mu.Unlock()
	q := c.queue
	q.callers = slices.Delete(q.callers, 0, 1)
	q.holder, h.queue = h, q
	q.waitsFor(errs.Held)
	if h.over {
		c.local.pass(q)
	}
}

// Pass lets the queue behind a lock go on, as the lock is over. To call it again does nothing.
func (l *Local[W]) Pass(h *Holder[W]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.over = true
	if h.queue != nil && h.queue.holder == h {
		l.pass(h.queue)
	}
}

func (l *Local[W]) pass(q *localQueue[W]) {
	q.holder, q.settled = nil, q.reasons
	l.goOn(q)
}

// Wait returns the queue's wait on the nodes; nil if there is none.
func (c *Caller[W]) Wait() *W {
	c.local.mu.Lock()
	defer c.local.mu.Unlock()
	return c.queue.wait
}

// SetWait sets the queue's wait on the nodes.
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

// Reason returns why the caller waits: why the last attempt of its queue failed, or errs.Held if
// another caller has, or had, the key meanwhile. It returns nil if neither was found since the
// caller came.
func (c *Caller[W]) Reason() error {
	c.local.mu.Lock()
	defer c.local.mu.Unlock()
	if c.queue.reasons > c.settled {
		return c.queue.reason
	}
	return nil
}
