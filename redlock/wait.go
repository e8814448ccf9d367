package redlock

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// wait is a Redlock's wait for one key. The lanes, the ears and timers tell it what they
// hear; next says what is to be done.
//
// Every message can get lost, and every node, so nothing depends on one: a waiter that
// waits for long looks by itself, and the first in the queue looks when the holder's key
// expires. All that is sent may be sent twice. So what goes wrong costs time, and never a
// wake-up for good.
type wait struct {
	r       *Redlock
	key     string // as the caller names it
	name    string // as the nodes do
	value   string // of the last try, for the next to give back; its goroutine's
	queue   *protocol.Queue
	who     any
	sharded any
	changed chan struct{} // holds one signal: next may say something else now

	mu     sync.Mutex
	phase  phase
	lock   *Lock     // that it was won with
	ended  time.Time // when all nodes were told that we do not wait any more; zero: not yet
	ticket int64     // of the queue entries, the same on all nodes
	first  int64     // ticket, before it was raised
	raises int       // how often the ticket was raised
	raise  bool      // it has to be

	tries     int       // in vain, one after the other
	vain      int       // turns in a row that found no majority in time
	notBefore time.Time // of the next try, if nodes are free
	poll      time.Time // of the next try if there is nobody to wake us, or of the next question while outside
	foreign   foreign   // what is known of clients that wake nobody
	looked    int       // the node that was looked at last
	looking   bool      // it has not answered yet
	look      time.Time // at the next
	pause     time.Duration
	ends      time.Time // of a quarantine, which is worth a try
	owed      time.Time // until when what a try took may be given back
	freed     int       // nodes that were free, and counted, when next was last asked
	some      time.Time // since when there have been that many; zero: the others have been asked

	nodes []standing
}

// phase is what a wait may do.
type phase uint8

const (
	// queued: the wait has, or asks for, an entry in the key's queue on every node that can
	// wake it. It tries to take the key when a majority has woken it.
	queued phase = iota
	// outside: the wait's last turn found no majority in time, so it has no entry and takes
	// nothing. An entry would hold the others up at each of its turns, as it would be woken
	// first, take the key where it can, and give it back in vain. It asks the nodes from
	// time to time, and queues again, with a new ticket, once a majority has answered.
	outside
	// over: the wait was won or given up.
	over
)

// standing is what is known of our place on one node.
type standing struct {
	mute  bool      // it did not answer when it was asked last
	asked bool      // for one; zero again if that failed
	again time.Time // when to ask again after that
	in    bool      // we have it
	early bool      // it was asked before we could be woken, and may have dropped us since
	free  bool      // we were told that the key is ours to take, since we last tried to
	until time.Time // when that may be, at the latest; zero: nobody knows
	plain bool      // it has no queue for us
}

// leaveFor is how long a node is told that we have left, if it does not answer.
const leaveFor = 10 * time.Second

func (r *Redlock) newWait(key string) *wait {
	name := r.cfg.KeyPrefix + key
	now := r.cfg.Clock.Now()
	w := &wait{
		r: r, key: key, name: name, queue: protocol.QueueOf(name), changed: make(chan struct{}, 1),
		ticket: r.tickets.next(now),
		nodes:  make([]standing, len(r.nodes)),
		pause:  firstLook, look: now.Add(firstLook),
		looked: int(r.random.below(time.Duration(len(r.nodes)))),
	}
	w.first = w.ticket
	w.foreign.seen = r.foreigners.known(name, now)
	w.who, w.sharded = r.subscriber.Name(name)
	return w
}

// entry is what our operations say of us; value is to be given back.
func (w *wait) entry(value string) *protocol.Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &protocol.Entry{Waiter: w, Name: w.who, ShardName: w.sharded, Ticket: protocol.TicketText(w.ticket), Number: w.ticket, Old: value}
}

// won ends the wait with the lock. Nodes that granted it have no place of ours any more. On
// those that refused, as the release that woke us is still on its way there, we stand on:
// when it arrives the lock grows, and when the lock is released the place is given up.
func (w *wait) won(lock *Lock) {
	w.r.subscriber.End(w.name, w)
	w.mu.Lock()
	w.phase, w.lock = over, lock
	var late []bool
	for i, s := range w.nodes {
		if s.in && s.free {
			late = w.only(late, i)
		}
	}
	w.mu.Unlock()
	if late != nil {
		lock.growInto(late, w)
	}
}

// only adds a node to some.
func (w *wait) only(nodes []bool, node int) []bool {
	if nodes == nil {
		nodes = make([]bool, len(w.nodes))
	}
	nodes[node] = true
	return nodes
}

// giveUp ends the wait without the lock.
func (w *wait) giveUp() {
	w.finish()
	w.r.subscriber.End(w.name, w)
	w.leave(w.value)
}

// finish is for when all nodes are being told that we do not wait any more.
func (w *wait) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.ended = over, w.r.cfg.Clock.Now()
}

// probe asks all nodes whether they answer, and takes nothing. The error is nil if a
// majority whose votes count has answered in time.
func (w *wait) probe(ctx context.Context) *QuorumError {
	cmd := w.command(protocol.Probe, "")
	cmd.Entry, cmd.Observer = w.r.newcomer(w.name), observer{w.r}
	round := w.r.start(quorum.Spec[protocol.Operation]{Op: cmd})
	round.Wait(ctx)
	if round.Tally().Outcome() == quorum.Won {
		return nil
	}
	failed := w.r.unanswered(ctx, round)
	failed.Op, failed.Granted = protocol.Acquire.String(), 0
	return failed
}

// stand asks nodes for a place, and leave gives it up, for as long as a node may take to
// come round: where it cannot be said the place is lost when it is our turn.
func (w *wait) stand(nodes []bool) {
	w.r.start(quorum.Spec[protocol.Operation]{Op: w.command(protocol.Enqueue, ""), Nodes: nodes, All: true, Done: w.failed})
}

func (w *wait) leave(value string) {
	keep := w.r.cfg.Clock.Now().Add(max(w.r.cfg.NodeTimeout, leaveFor))
	w.mu.Lock()
	if w.owed.After(keep) {
		keep = w.owed // behind a command that stands
	}
	w.mu.Unlock()
	w.r.start(quorum.Spec[protocol.Operation]{Op: w.command(protocol.Dequeue, value), All: true, KeepUntil: keep})
}

func (w *wait) command(k protocol.Kind, value string) protocol.Operation {
	return protocol.Operation{Kind: k, Observer: w, Key: w.key, NodeKey: w.name, Value: value, TTL: int64(0), Queue: w.queue, Entry: w.entry(value)}
}
