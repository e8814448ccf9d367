package waitqueue

import (
	"strings"
	"sync"
	"time"
)

// RecentKeys remembers keys and when each was last noted. There are two kinds of it. One holds the
// keys that foreign clients use. The other holds hand-offs: keys whose release by this client has
// just woken a waiter. The client must not take those again before that waiter comes.
type RecentKeys struct {
	mu   sync.Mutex
	keys map[string]time.Time
}

// maxRecent bounds the memory. To forget a hand-off may cost the woken waiter its turn. To forget
// a foreign key costs a wait the second or two until it notices those clients itself.
const maxRecent = 1 << 12

// Note remembers a key. If there are too many, it forgets all others.
func (k *RecentKeys) Note(key string, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil || len(k.keys) >= maxRecent {
		k.keys = map[string]time.Time{}
	}
	k.keys[strings.Clone(key)] = now
}

// Take reports whether a key is remembered, and forgets it.
func (k *RecentKeys) Take(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, known := k.keys[key]
	delete(k.keys, key)
	return known
}

// seen returns when a key was last noted; zero if never, or more than foreignFor ago.
func (k *RecentKeys) seen(key string, now time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, known := k.keys[key]
	if known && now.Sub(at) >= foreignFor {
		delete(k.keys, key)
		return time.Time{}
	}
	return at
}
