package redlock

import (
	"errors"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/conn"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Trace reports the result of one round, for metrics and for tools that show it. A round is one
// operation that is sent to several nodes.
//
// A round with the Op "clean up", "top up", "wait", "leave" or "inspect" may go to some of the
// nodes, and needs no majority: its Outcome and Need mean nothing, but its Nodes do.
type Trace struct {
	// Op is the operation:
	//
	//   - "acquire": an attempt to take the key. With Config.Fencing each proposed token is a round
	//     of its own.
	//   - "extend": an Extend, or a renewal by KeepAlive or Do.
	//   - "top up": a held lock takes the key on nodes that lack it.
	//   - "release": a Release, also that of Do or Close.
	//   - "release after": a ReleaseAfter. If no majority can have the key, a "release" follows.
	//   - "clean up": the key of a failed attempt without a queue entry is deleted.
	//   - "wait": a wait asks nodes for a queue entry (an Enqueue). So does a look, by which it asks
	//     one node now and then. After a failed try that keeps its queue entry, the same operation
	//     deletes the key of the try.
	//   - "leave": a wait gives up its queue entry (a Dequeue). After a try that found no majority in
	//     time, the same operation deletes the key of the try. Or a node removes further dead waiters.
	//   - "look": a wait without queue entries asks all nodes whether they answer (a probe, not a
	//     look).
	//   - "force release": a ForceRelease or ForceReleaseForeign, for one value of the key.
	//   - "inspect": an Inspect.
	//   - "health": a Healthy.
	Op      string
	Key     string         // without Config.KeyPrefix
	Outcome quorum.Outcome // at the decision; Open if the caller left before it
	Granted int            // grants at the decision; a later grant is in Nodes
	Need    int            // grants that win
	Start   time.Time      // before the first byte was sent, by the Redlock's clock
	Elapsed time.Duration  // from before the first byte was sent to the decision
	Nodes   []NodeTrace    // the nodes that the round was meant for, in the order of New
}

// NodeTrace is one node's part in a round.
type NodeTrace struct {
	Addr    string
	Vote    quorum.Vote   // in the end, perhaps after the decision; Pending if nothing was sent
	Latency time.Duration // from before the first byte was sent to the vote
	Err     error         // why it refused or failed; nil for a grant
}

// traceOf describes a round that was decided.
func traceOf(nodes []*conn.Node, round *quorum.Round[protocol.Operation]) Trace {
	op, tally := round.Op(), round.Tally()
	t := Trace{
		Op:      op.Kind.String(),
		Key:     op.Key,
		Outcome: tally.Outcome(),
		Granted: tally.Granted,
		Need:    tally.Need(),
		Start:   round.Start(),
		Elapsed: round.Decided().Sub(round.Start()),
	}
	for _, b := range round.Ballots() {
		n := NodeTrace{Addr: nodes[b.Node].Addr, Vote: b.Final, Latency: b.Latency}
		switch {
		case errors.Is(b.Err, quorum.ErrNotSent):
			n.Vote = quorum.Pending
			fallthrough
		case b.Final != quorum.Granted:
			n.Err = ballotErr(round, b)
		}
		t.Nodes = append(t.Nodes, n)
	}
	return t
}
