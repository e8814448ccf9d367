package redlock

import (
	"slices"
	"sync"
)

// turns lines up the goroutines of one Redlock that want the same key, first come
// first served: only the first of each line asks the nodes. Sixty that ask side by
// side split the votes between them until nobody ever gets a majority.
type turns struct {
	mu    sync.Mutex
	lines map[string]*line
}

// line is those who want one key.
type line struct {
	places []*place
	reason error // why the last attempt was in vain; nil before there was one
}

// place is somebody's place in a line.
type place struct {
	first chan struct{} // closed when everybody in front has left; nil: nobody was
	nudge chan struct{} // holds one hint that the key may be free; nil before a failure
	free  bool          // such a hint from before the first failure
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
	l.places = append(l.places, p)
	return p
}

// leave gives a place up, wherever it is in the line.
func (t *turns) leave(key string, p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[key]
	i := slices.Index(l.places, p)
	l.places = slices.Delete(l.places, i, i+1)
	switch {
	case len(l.places) == 0:
		delete(t.lines, key)
	case i == 0:
		close(l.places[0].first)
	}
}

// free tells the first in line that key was released here.
func (t *turns) free(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[key]
	switch {
	case l == nil:
	case l.places[0].nudge == nil:
		l.places[0].free = true
	default:
		select {
		case l.places[0].nudge <- struct{}{}:
		default: // a hint that was not taken yet serves as well
		}
	}
}

// failed notes for the line why p, its first one, tried in vain. From then on p
// has a nudge.
func (t *turns) failed(key string, p *place, reason error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines[key].reason = reason
	if p.nudge == nil {
		p.nudge = make(chan struct{}, 1)
		if p.free {
			p.nudge <- struct{}{}
		}
	}
}

// reason is why the line waits. Before anybody has tried, somebody of this Redlock
// is about to.
func (t *turns) reason(key string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reason := t.lines[key].reason; reason != nil {
		return reason
	}
	return ErrHeld
}
