package redlock

import (
	"time"

	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/quorum"
)

const (
	queuePrefix = "redlock:queue:"
	flagPrefix  = "redlock:queued:"
	wakePrefix  = "redlock:wake:" // of channels
)

// queue is where each node keeps those who wait for a key, boxed once for all nodes.
type queue struct {
	key  any // string: a sorted set, in the slot of the lock's key
	flag any // string: a key that is there while somebody is in it
}

func queueOf(name string) *queue {
	return &queue{key: slot.Sibling(queuePrefix, name), flag: slot.Sibling(flagPrefix, name)}
}

// flagOf is as much as a release needs of who did not wait.
func flagOf(name string) *queue { return &queue{flag: slot.Sibling(flagPrefix, name)} }

// stance is what a command says of its sender to the queue.
type stance struct {
	wait    *wait  // is told of each node's answer; nil: nobody is
	who     any    // string: the sender's name on a server: where it hears, and of what
	sharded any    // string: on a server of a Cluster
	ticket  any    // string: a number
	number  int64  // the same; 0: no entry
	old     string // an earlier attempt's value, to give back first
}

// name is the sender's on a server of that sort.
func (s *stance) name(sharded bool) any {
	if sharded {
		return s.sharded
	}
	return s.who
}

// newcomer is who takes no place, and a free key only if nobody has one.
func (r *Redlock) newcomer(name string) *stance {
	who, sharded := r.names(name)
	return &stance{who: who, sharded: sharded, ticket: noTicket}
}

// noTicket is the ticket of who takes no place, and nothing from those who have one.
const noTicket = "0"

// shardChannel is where a Redlock hears of a key on a Cluster: in the key's slot.
func shardChannel(id, key string) string { return "{" + slot.Tag(key) + "}" + id }

// answer is what a node says of a queue.
type answer struct {
	verdict int64
	left    int64 // milliseconds after which that may be different, or one of those below
	ahead   int64 // how many are ahead of us
	tail    int64 // the highest ticket
	fence   int64
	holder  int64 // a digest of the value that has the key; 0: none, or not told
}

const (
	answerHeld    = iota // somebody else has the key
	answerGranted        // we have
	answerFree           // nobody has, and we are the first in the queue
	answerFenced         // the same, but the token that we propose is too low
	answerAhead          // nobody has, and somebody is ahead of us
)

const (
	leftUnknown = -1
	leftMore    = -2 // somebody has to go on removing the dead: see onward
	leftMissed  = 1  // somebody who was woken did not come, as we found when we stood
)

// onward has a node go on where a script stopped that found more of the dead in a queue
// than one script removes. The script has told nobody that the key is free, so this is
// sent by the client that sent that script: it lives. The node's answer may ask for
// the next. If all of that is lost a waiter's next look does the same.
func (r *Redlock) onward(node int, c *command) {
	name := c.key.(string)
	r.leaveAt(node, c.resource, name, r.newcomer(name), r.cfg.Clock.Now().Add(leaveFor))
}

// leaveAt has one node give up the sender's entry in the queue for a key. It is repeated
// until keep; zero: sent once.
func (r *Redlock) leaveAt(node int, resource, name string, s *stance, keep time.Time) {
	only := make([]bool, len(r.nodes))
	only[node] = true
	r.start(quorum.Spec[command]{
		Op:        command{kind: kindLeave, r: r, resource: resource, key: name, queue: queueOf(name), stance: s},
		Nodes:     only,
		All:       true,
		KeepUntil: keep,
	})
}

func readAnswer(reply any) (a answer, ok bool) {
	all, _ := reply.([]any)
	into := [...]*int64{&a.verdict, &a.left, &a.ahead, &a.tail, &a.fence, &a.holder}
	if len(all) != len(into) {
		return a, false
	}
	for i, one := range all {
		if *into[i], ok = one.(int64); !ok {
			return a, false
		}
	}
	return a, a.verdict >= answerHeld && a.verdict <= answerAhead && a.ahead >= 0 && a.fence >= 0
}
