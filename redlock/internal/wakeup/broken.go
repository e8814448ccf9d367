package wakeup

import (
	"sync"

	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// broken learns from nodes that ForceRelease has broken a kept lock. No decision depends on
// such a message: it only brings the lock's renewal forward, and the renewal finds what a
// majority of the nodes has. A client that may publish can cost a holder a renewal, and nothing
// else.
type broken struct {
	subscriber *Subscriber

	mu      sync.Mutex
	locks   map[protocol.Digest]func(node int) // by digest of the value: reports that it was broken
	keys    []string                           // node keys that are to be subscribed to
	known   bool                               // the subscriber's keptLocks, as work last set it
	working bool                               // a goroutine runs work
	closed  bool
}

// WatchLock makes the Subscriber call report when a node has deleted the key with this value by
// force, until UnwatchLock. It does not block: another goroutine subscribes. For a key on a
// Cluster it may be called again, as the key's slot may have moved.
func (s *Subscriber) WatchLock(value protocol.Digest, nodeKey string, report func(node int)) {
	b := &s.broken
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	if b.locks == nil {
		b.locks = map[protocol.Digest]func(int){}
	}
	if len(b.locks) == 0 || s.clustered {
		b.keys = append(b.keys, nodeKey)
	}
	b.locks[value] = report
	b.start()
}

// UnwatchLock ends what WatchLock began.
func (s *Subscriber) UnwatchLock(value protocol.Digest) {
	b := &s.broken
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.locks, value)
	if len(b.locks) == 0 && !b.closed {
		b.start()
	}
}

func (b *broken) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// start starts work, unless it runs. The caller holds mu.
func (b *broken) start() {
	if !b.working {
		b.working = true
		b.subscriber.running.Go(b.work)
	}
}

// work subscribes for keys, and reports to the subscriber whether there are locks at all. One
// goroutine at a time runs it, so that its last report is true.
func (b *broken) work() {
	for {
		b.mu.Lock()
		keys, some := b.keys, len(b.locks) > 0
		b.keys = nil
		if b.closed || len(keys) == 0 && some == b.known {
			b.working = false
			b.mu.Unlock()
			return
		}
		b.known = some
		b.mu.Unlock()
		b.subscriber.keepLocks(some)
		if !some {
			continue // nothing would end the subscription
		}
		for _, key := range keys {
			for node, source := range b.subscriber.sources {
				source.subscribe(slot.WakePrefix + protocol.BrokenChannel(key, b.subscriber.Nodes[node].Sharded))
			}
		}
	}
}

// message handles a node's message if it is about a broken lock. It returns false for any other.
func (b *broken) message(node int, text string) bool {
	d, ours, ok := protocol.ParseBroken(text)
	if ok {
		b.mu.Lock()
		report := b.locks[d]
		b.mu.Unlock()
		if report != nil {
			report(node)
		}
	}
	return ours
}
