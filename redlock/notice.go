package redlock

import (
	"sync"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// notices has the holder of a lock know when ForceRelease breaks it. The script that
// deletes a key says so on a channel that every Redlock with kept locks hears on the node,
// or on the key's shard. That is rare, so one channel serves all.
//
// A message ends no lock. It has the lock renewed sooner, and the renewal finds what a
// majority of the nodes has: a client that may publish can cost a holder a renewal, and
// nothing else. Nothing depends on a message either, as the next renewal comes without one.
type notices struct {
	ears *ears

	mu      sync.Mutex
	locks   map[protocol.Digest]*Lock // those that listen
	tune    []string                  // their keys that are to be listened for
	heard   bool                      // the ears know that there are locks
	working bool                      // a goroutine runs work
	closed  bool
}

// notice is what the nodes have said of a lock. The lock's mu guards it.
type notice struct {
	digest protocol.Digest
	on     []bool    // nodes that have deleted the key since the last renewal began
	sum    int       // how many
	next   time.Time // no renewal for the sake of messages before that
}

// listen has the lock hear of its end by force, from its first renewal on: a lock that is
// held for less than a third of its ttl costs nothing. With a Cluster each renewal looks
// for the shard again, as the key's slot may have moved. l.mu is held, by the scheduler, which
// must not wait: so another goroutine does what is left.
func (l *Lock) listen() {
	n := &l.r.ears.notices
	first := l.notice == nil
	if first {
		l.notice = &notice{digest: protocol.DigestOf(l.value), on: make([]bool, len(l.r.nodes))}
	}
	if first || l.r.clustered {
		n.add(l)
	}
}

// listenNoMore ends what listen began; l.mu is held.
func (l *Lock) listenNoMore() {
	if l.notice != nil {
		l.r.ears.notices.drop(l.notice.digest)
	}
}

func (n *notices) add(l *Lock) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if n.locks == nil {
		n.locks = map[protocol.Digest]*Lock{}
	}
	if len(n.locks) == 0 || l.r.clustered {
		n.tune = append(n.tune, l.name.(string))
	}
	n.locks[l.notice.digest] = l
	n.start()
}

func (n *notices) drop(d protocol.Digest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.locks, d)
	if len(n.locks) == 0 && !n.closed {
		n.start()
	}
}

func (n *notices) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
}

// start has work run; mu is held.
func (n *notices) start() {
	if !n.working {
		n.working = true
		n.ears.running.Go(n.work)
	}
}

// work tells the ears for which keys they are to listen, and whether for any. One
// goroutine at a time runs it, so that what it says last is true.
func (n *notices) work() {
	for {
		n.mu.Lock()
		keys, some := n.tune, len(n.locks) > 0
		n.tune = nil
		if n.closed || len(keys) == 0 && some == n.heard {
			n.working = false
			n.mu.Unlock()
			return
		}
		n.heard = some
		n.mu.Unlock()
		n.ears.keep(some)
		if !some {
			continue // nobody would end it
		}
		for _, name := range keys {
			for node, s := range n.ears.stations {
				s.tune(protocol.WakePrefix + protocol.BrokenChannel(name, n.ears.r.nodes[node].Sharded))
			}
		}
	}
}

// said takes a message, and reports false if it is of another kind.
func (n *notices) said(node int, message string) bool {
	d, broken, ok := protocol.ParseBroken(message)
	if ok {
		n.mu.Lock()
		l := n.locks[d]
		n.mu.Unlock()
		if l != nil {
			l.broken(node)
		}
	}
	return broken
}

// broken takes a node's message that it has deleted the lock's key.
func (l *Lock) broken(node int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.notice; l.cause == nil && !n.on[node] {
		n.on[node] = true
		n.sum++
		l.hasten()
	}
}

// asks takes note of a renewal that is about to be sent, which will find what was said
// before. Those for the sake of messages are apart by as much as those that found no
// quorum, so that a flood of messages is none of renewals. mu is held.
func (l *Lock) asks() {
	if n := l.notice; n.sum > 0 {
		clear(n.on)
		n.sum, n.next = 0, l.r.cfg.Clock.Now().Add(minRetry)
	}
}

// hasten renews the lock sooner, if nodes have deleted its key. When so many have that no
// majority can be left, the renewal is due now, and finds the lock lost. Before that it
// could overtake ForceRelease on its way to the others, win, and put the key back where it
// was deleted. But a message can be lost: so after the time that the others have had to
// answer ForceRelease, few are enough. A renewal that is under way has another one follow.
// mu is held.
func (l *Lock) hasten() {
	n := l.notice
	if n == nil || n.sum == 0 {
		return
	}
	nodes := len(l.r.nodes)
	due := l.r.cfg.Clock.Now()
	if n.sum <= nodes-quorum.Size(nodes) {
		due = due.Add(min(l.r.cfg.NodeTimeout, defaultNodeTimeout))
	}
	if due.Before(n.next) {
		due = n.next
	}
	l.r.scheduler.RenewBy(l, due)
}
