package redlock

import (
	"strings"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// newcomer is the sender of an operation that takes no queue entry, and a free key only if the
// queue is empty.
func (r *Redlock) newcomer(name string) *protocol.Entry {
	single, sharded := r.subscriber.Name(name)
	return &protocol.Entry{Name: single, ShardName: sharded, Ticket: protocol.NoTicket}
}

// observer hears the replies to operations that no wait hears.
type observer struct{ r *Redlock }

func (o observer) Replied(node int, op *protocol.Operation, reply protocol.Reply) {
	if reply.MoreDead {
		o.r.removeDead(node, op)
	}
}

func (observer) QueueDenied(int, error) {}

// removeDead has a node go on where a script stopped that found more dead entries in a queue
// than one script removes. That script has told nobody that the key is free, so the client that
// sent it sends this too: it lives. The node's reply may ask for the next. If all of that is
// lost, a waiter's next look does the same.
func (r *Redlock) removeDead(node int, op *protocol.Operation) {
	name := op.NodeKey.(string)
	r.leaveAt(node, op.Key, name, r.newcomer(name), r.cfg.Clock.Now().Add(leaveFor))
}

// leave has a node remove the client's entry with this ticket.
func (r *Redlock) leave(node int, nodeKey string, ticket int64) {
	entry := r.newcomer(nodeKey)
	entry.Ticket = protocol.TicketText(ticket)
	r.leaveAt(node, strings.TrimPrefix(nodeKey, r.cfg.KeyPrefix), nodeKey, entry, time.Time{})
}

// leaveAt has one node give up the sender's entry in the queue for a key. It is repeated until
// keep; zero: it is sent once.
func (r *Redlock) leaveAt(node int, key, name string, entry *protocol.Entry, keep time.Time) {
	only := make([]bool, len(r.nodes))
	only[node] = true
	r.start(quorum.Spec[protocol.Operation]{
		Op:        protocol.Operation{Kind: protocol.Dequeue, Observer: observer{r}, Key: key, NodeKey: name, Queue: protocol.QueueOf(name), Entry: entry},
		Nodes:     only,
		All:       true,
		KeepUntil: keep,
	})
}
