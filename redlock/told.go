package redlock

import (
	"strings"
	"sync"
)

// told remembers the keys whose release woke somebody. Who releases a key and takes it
// again at once would be ahead of whom it woke each time.
type told struct {
	mu   sync.Mutex
	keys map[string]struct{}
}

// maxTold bounds the memory: to forget one costs somebody a turn at the most.
const maxTold = 1 << 12

func (t *told) note(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys == nil || len(t.keys) >= maxTold {
		t.keys = map[string]struct{}{}
	}
	t.keys[strings.Clone(key)] = struct{}{}
}

// take reports whether the key is remembered, and forgets it.
func (t *told) take(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.keys[key]
	delete(t.keys, key)
	return ok
}
