package redlock

import (
	"slices"
	"sync"
)

// turns lines up the goroutines of one Redlock that want the same key, first come
// first served: only the first of each line asks the nodes, when the lock that the one
// before it got is over. So a process stands in the nodes' queue once for a key, and hands
// the lock over within itself while nobody else waits.
type turns struct {
	mu    sync.Mutex
	lines map[string]*line
}

// line is those who want one key, and who has it.
type line struct {
	places []*place
	holder *Lock // of Acquire's; nil: nobody here
	wait   *wait // the line's place in the nodes' queue; nil: none

	reason error // why the line waits, as found last: an attempt failed, or a caller has the key
	found  int   // how often that was found
	past   int   // how often it had been found when the last holder's lock was over
}

// place is somebody's place in a line.
type place struct {
	first chan struct{} // closed when it is his turn; nil: it was at once
	since int           // the line's past when it joined
}

func newTurns() *turns { return &turns{lines: map[string]*line{}} }

// join takes the last place in the line for key.
func (t *turns) join(key string) *place {
	p := &place{}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[key]
	if l == nil {
		l = &line{}
		t.lines[key] = l
	} else {
		p.first = make(chan struct{})
	}
	p.since = l.past
	l.places = append(l.places, p)
	return p
}

// leave gives a place up, wherever it is in the line, and with the last one also that in
// the nodes' queue.
func (t *turns) leave(key string, p *place) {
	if w := t.drop(key, p); w != nil {
		w.giveUp()
	}
}

// drop returns the place in the nodes' queue if nobody is left to take it over.
func (t *turns) drop(key string, p *place) (over *wait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[key]
	i := slices.Index(l.places, p)
	l.places = slices.Delete(l.places, i, i+1)
	if len(l.places) == 0 {
		over, l.wait = l.wait, nil
	}
	if i == 0 && l.holder == nil {
		t.next(key, l)
	} else if len(l.places) == 0 && l.holder == nil {
		delete(t.lines, key)
	}
	return over
}

// next lets the first in line go; mu is held.
func (t *turns) next(key string, l *line) {
	if len(l.places) == 0 {
		delete(t.lines, key)
		return
	}
	close(l.places[0].first)
}

// hold gives up the first place for the lock. The line goes on when that is over.
func (t *turns) hold(key string, p *place, lock *Lock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[key]
	l.places = slices.Delete(l.places, 0, 1)
	l.holder = lock
	l.waits(ErrHeld)
	if lock.passed {
		t.over(key, l)
	}
}

// pass lets the line go on, as the lock is over.
func (t *turns) pass(lock *Lock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lock.passed = true
	if l := t.lines[lock.key]; l != nil && l.holder == lock {
		t.over(lock.key, l)
	}
}

// over lets the line go on without a holder; mu is held.
func (t *turns) over(key string, l *line) {
	l.holder, l.past = nil, l.found
	t.next(key, l)
}

// wait is the line's place in the nodes' queue, and queue sets it.
func (t *turns) wait(key string) *wait {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines[key].wait
}

func (t *turns) queue(key string, w *wait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines[key].wait = w
}

// failed records for the line why the attempt of its first one failed.
func (t *turns) failed(key string, reason error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines[key].waits(reason)
}

// waits records why the line waits; the turns' mu is held.
func (l *line) waits(reason error) {
	l.reason = reason
	l.found++
}

// reason returns why p waits: why the last attempt of the line failed, or ErrHeld if a
// caller of this Redlock has, or had, the key meanwhile. It returns nil if p knows of
// neither.
func (t *turns) reason(key string, p *place) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lines[key]; l.found > p.since {
		return l.reason
	}
	return nil
}
