package waitqueue

import "time"

// node holds what a wait knows of one node.
type node struct {
	silent  bool // it did not answer the last question
	noQueue bool // it does not let the client queue

	entry   entry
	retryAt time.Time // when an absent entry may be asked for; zero: at once

	woken  bool      // the node has said since the last try that the key is free for us
	freeAt time.Time // when the key may become free for us there; zero: unknown
}

// entry is the state of the wait's queue entry on a node.
type entry uint8

const (
	// absent: the node has no entry of the wait, or may have dropped it.
	absent entry = iota
	// requested: the node was asked for an entry.
	requested
	// requestedUnheard: the node was asked before it could wake us. It may have dropped the entry
	// since, so its answer does not count.
	requestedUnheard
	// inQueue: the node has the entry.
	inQueue
	// refreshing: the node has the entry, and was asked for it again.
	refreshing
)

func (e entry) present() bool { return e == inQueue || e == refreshing }

// pending reports that a question for the entry has no answer yet.
func (e entry) pending() bool { return e == requested || e == requestedUnheard || e == refreshing }

// request returns the state after the node was asked for the entry.
func (e entry) request() entry {
	switch e {
	case absent:
		return requested
	case inQueue:
		return refreshing
	}
	return e
}

// answered returns the state after an answer of the node. granted says that the node has given us
// the key, which removes the entry.
func (e entry) answered(granted bool) entry {
	if granted || e == requestedUnheard {
		return absent
	}
	return inQueue
}

// unanswered returns the state after a question that failed.
func (e entry) unanswered() entry {
	if e == refreshing {
		return inQueue
	}
	return absent
}

// subscribed returns the state once the node can wake us, after it could not, and may have dropped
// the entry.
func (e entry) subscribed() entry {
	if e.pending() {
		return requestedUnheard
	}
	return absent
}

// unsubscribed returns the state once the node can no longer wake us.
func (e entry) unsubscribed() entry {
	switch e {
	case inQueue:
		return absent
	case refreshing:
		return requested
	}
	return e
}

// request records that nodes are asked for an entry. The caller holds mu.
func (w *Wait) request(nodes []bool) {
	for i, asked := range nodes {
		if asked {
			n := &w.nodes[i]
			n.entry = n.entry.request()
		}
	}
}

// queuedOnMajority reports whether a majority of the nodes has the entry. The caller holds mu.
func (w *Wait) queuedOnMajority() bool {
	present := 0
	for _, n := range w.nodes {
		if n.entry.present() {
			present++
		}
	}
	return present >= w.majority()
}

// allSilent reports whether no node has answered its last question. The caller holds mu.
func (w *Wait) allSilent() bool {
	for _, n := range w.nodes {
		if !n.silent {
			return false
		}
	}
	return true
}
