package redlock

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
	"github.com/quorumlock/redlock/redlock/internal/waitqueue"
)

// wait is a Redlock's wait for one key. The embedded Wait decides on the next step; wait sends its
// operations, and passes replies and messages on to it. It belongs to the local queue of the key,
// and goes from one caller to the next.
type wait struct {
	*waitqueue.Wait
	r         *Redlock
	key       string // as the caller names it
	nodeKey   string // as the nodes name it
	name      any    // the client's name in the queues of single servers
	shardName any    // the same in the queues of a Cluster's shards
	queue     *protocol.Queue
	lock      atomic.Pointer[Lock] // the lock that the wait has led to; nil until then

	// Only the first caller of the local queue uses these.
	value     string              // of the last attempt; the next try deletes a key with it
	situation waitqueue.Situation // for next; kept here to save an allocation for each step
}

// newWait begins a wait for key. It asks a node for a queue entry once that node can wake it.
func (r *Redlock) newWait(key string) *wait {
	w := &wait{r: r, key: key, nodeKey: r.cfg.KeyPrefix + key}
	w.Wait = r.waits.Begin(w.nodeKey, r.cfg.Clock.Now())
	w.queue = protocol.QueueOf(w.nodeKey)
	w.name, w.shardName = r.subscriber.Name(w.nodeKey)
	w.situation.CanWake = func(node int) bool { return r.subscriber.Subscribed(node, w.nodeKey) }
	w.situation.Counts = r.guard.Counts
	return w
}

// next returns the wait's next step.
func (w *wait) next() waitqueue.Step {
	now := w.r.cfg.Clock.Now() // before NextEnd reads it, so that the end is not in the past
	w.situation.QuarantineEnds = w.r.guard.NextEnd()
	return w.Next(now, w.situation)
}

// sender identifies the wait by its queue entry, for an operation that also deletes a key with the
// value old.
func (w *wait) sender(old string) *protocol.Sender {
	ticket := w.Ticket()
	return &protocol.Sender{
		Waiter: w, Name: w.name, ShardName: w.shardName,
		Ticket: protocol.TicketText(ticket), Number: ticket, Old: old,
	}
}

// operation returns an operation of this kind that also deletes a key with the value old. old is
// both the operation's value and the sender's: on a node that denies us the queue, a Dequeue is sent
// as a release of that value.
func (w *wait) operation(k protocol.Kind, old string) protocol.Operation {
	return protocol.Operation{Kind: k, Observer: w, Key: w.key, NodeKey: w.nodeKey, Value: old, Queue: w.queue, Sender: w.sender(old)}
}

// enqueue asks nodes for a queue entry.
func (w *wait) enqueue(nodes []bool) {
	w.r.subscriber.Subscribe(w.nodeKey)
	w.r.start(quorum.Spec[protocol.Operation]{Op: w.operation(protocol.Enqueue, ""), Nodes: nodes, All: true, Done: w.roundDone})
}

// probe asks all nodes whether they answer, and takes nothing. The error is nil if a
// majority whose votes count has answered in time.
func (w *wait) probe(ctx context.Context, o *observed) *QuorumError {
	round := w.r.start(quorum.Spec[protocol.Operation]{Op: protocol.Operation{
		Kind: protocol.Probe, Observer: observer{w.r}, Key: w.key, NodeKey: w.nodeKey,
		Queue: w.queue, Sender: w.r.sender(w.nodeKey), Context: ctx,
	}})
	round.Wait(ctx)
	o.decided(round)
	if round.Tally().Outcome() == quorum.Won {
		return nil
	}
	failed := w.r.noQuorum(ctx, round)
	failed.Op, failed.Granted = protocol.Acquire.String(), 0
	return failed
}

// won ends the wait with the lock. The lock then grows to nodes whose wake-up came too late for the
// try. It is stored before the Wait ends: a wake-up that finds the Wait won then finds the lock, and
// an earlier one is among those that Won returns.
func (w *wait) won(lock *Lock) {
	w.r.subscriber.End(w.nodeKey, w)
	w.lock.Store(lock)
	if late := w.Won(); late != nil {
		lock.growInto(late, w)
	}
}

// giveUp ends the wait without the lock.
func (w *wait) giveUp() {
	w.End(w.r.cfg.Clock.Now())
	w.r.subscriber.End(w.nodeKey, w)
	w.dequeue(w.value)
}

// dequeue has all nodes remove the queue entry, and delete a key with the value old.
func (w *wait) dequeue(old string) {
	w.r.start(quorum.Spec[protocol.Operation]{Op: w.operation(protocol.Dequeue, old), All: true, KeepUntil: w.LeaveUntil(w.r.cfg.Clock.Now())})
}

// Replied implements protocol.Observer.
func (w *wait) Replied(node int, op *protocol.Operation, r protocol.Reply) {
	observer{w.r}.Replied(node, op, r)
	if r.Queued && (op.Kind == protocol.Acquire || op.Kind == protocol.Enqueue) {
		w.Wait.Replied(w.r.cfg.Clock.Now(), node, op.Sender.Number, r.Queue)
	}
}

// QueueDenied implements protocol.Observer.
func (w *wait) QueueDenied(node int, err error) {
	w.NoQueue(node)
	if err != nil {
		w.r.subscriber.Denied(node, err)
	}
}

// Woken implements wakeup.Waiter.
func (w *wait) Woken(now time.Time, node int, ticket int64) bool {
	known, late := w.Wait.Woken(now, node, ticket)
	if late {
		only := make([]bool, len(w.r.nodes))
		only[node] = true
		w.lock.Load().growInto(only, w)
	}
	return known
}

// roundDone tells the Wait which nodes have not answered a finished round.
func (w *wait) roundDone(round *quorum.Round[protocol.Operation]) {
	w.Unanswered(w.r.cfg.Clock.Now(), round.Op().Kind, round.Op().Sender.Number, round.Ballots())
}

// sender identifies this Redlock in a key's queue, without a ticket. An operation without a ticket
// takes a free key only if the queue is empty.
func (r *Redlock) sender(nodeKey string) *protocol.Sender {
	name, shardName := r.subscriber.Name(nodeKey)
	return &protocol.Sender{Name: name, ShardName: shardName, Ticket: protocol.NoTicket}
}

// observer hears the replies to operations that belong to no wait.
type observer struct{ r *Redlock }

// Replied continues the work of a script that has found more dead queue entries than one script
// removes. That script has woken no waiter. So the client that sent it sends another one, whose
// reply may ask for a third. If one of them is lost, a waiter's next look does the same.
func (o observer) Replied(node int, op *protocol.Operation, reply protocol.Reply) {
	if reply.MoreDead {
		nodeKey := op.NodeKey.(string)
		o.r.dequeueOn(node, op.Key, nodeKey, o.r.sender(nodeKey), o.r.cfg.Clock.Now().Add(waitqueue.LeaveFor))
	}
}

func (observer) QueueDenied(int, error) {}

// dequeueStray has a node remove the client's entry with this ticket, after the node has woken a
// wait that is over.
func (r *Redlock) dequeueStray(node int, nodeKey string, ticket int64) {
	sender := r.sender(nodeKey)
	sender.Ticket = protocol.TicketText(ticket)
	r.dequeueOn(node, strings.TrimPrefix(nodeKey, r.cfg.KeyPrefix), nodeKey, sender, time.Time{})
}

// dequeueOn has one node remove a queue entry. The operation is sent once if keep is zero, and
// otherwise repeated until then.
func (r *Redlock) dequeueOn(node int, key, nodeKey string, sender *protocol.Sender, keep time.Time) {
	only := make([]bool, len(r.nodes))
	only[node] = true
	r.start(quorum.Spec[protocol.Operation]{
		Op: protocol.Operation{
			Kind: protocol.Dequeue, Observer: observer{r}, Key: key, NodeKey: nodeKey,
			Queue: protocol.QueueOf(nodeKey), Sender: sender,
		},
		Nodes: only, All: true, KeepUntil: keep,
	})
}
