package redlock

import (
	"slices"
	"sync"
)

// turns lines up the goroutines of one Redlock that wait for the same key, first
// come first served: only the first of each line asks the nodes. Sixty that ask
// side by side split the votes between them until nobody ever gets a majority.
type turns struct {
	mu    sync.Mutex
	lines map[string][]*turn
}

// turn is a place in a line.
type turn struct {
	first chan struct{} // closed when everybody in front has left
	nudge chan struct{} // holds one hint that the key may be free
}

func newTurns() *turns { return &turns{lines: map[string][]*turn{}} }

// join takes the last place in the line for key.
func (t *turns) join(key string) *turn {
	place := &turn{first: make(chan struct{}), nudge: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	line := append(t.lines[key], place)
	t.lines[key] = line
	if len(line) == 1 {
		close(place.first)
	}
	return place
}

// leave gives a place up, wherever it is in the line.
func (t *turns) leave(key string, place *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.lines[key]
	i := slices.Index(line, place)
	line = slices.Delete(line, i, i+1)
	if len(line) == 0 {
		delete(t.lines, key)
		return
	}
	t.lines[key] = line
	if i == 0 {
		close(line[0].first)
	}
}

// free tells the first in line that key was released here.
func (t *turns) free(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if line := t.lines[key]; len(line) > 0 {
		select {
		case line[0].nudge <- struct{}{}:
		default: // a hint that was not taken yet serves as well
		}
	}
}
