package redlock

import (
	"errors"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Trace is what became of one round, for metrics and for tools that show it.
//
// What is neither to acquire, to extend nor to release, forced or not, may go to some of
// the nodes and needs no majority: its Outcome and Need mean nothing, its Nodes do.
type Trace struct {
	Op      string         // "acquire", "extend", "release", "clean up", "top up", "wait", "leave", "force release" or "inspect"
	Key     string         // the resource, without Config.KeyPrefix
	Outcome quorum.Outcome // as decided; Open if the caller left before
	Granted int            // grants at the decision; a later grant is in Nodes
	Need    int            // grants that win
	Elapsed time.Duration  // from before the first byte to the decision
	Nodes   []NodeTrace    // the nodes that were asked, in the order of New
}

// NodeTrace is one node's part in a round.
type NodeTrace struct {
	Addr    string
	Vote    quorum.Vote   // in the end, perhaps after the decision; Pending if it was not asked
	Latency time.Duration // from before the first byte to the vote
	Err     error         // why it refused or failed; nil for a grant
}

// trace reports a finished round.
func (r *Redlock) trace(round *quorum.Round[protocol.Operation]) {
	cmd, tally := round.Op(), round.Tally()
	t := Trace{
		Op:      cmd.Kind.String(),
		Key:     cmd.Key,
		Outcome: tally.Outcome(),
		Granted: tally.Granted,
		Need:    tally.Need(),
		Elapsed: round.Decided().Sub(round.Start()),
	}
	for _, b := range round.Ballots() {
		n := NodeTrace{Addr: r.nodes[b.Node].Addr, Vote: b.Final, Latency: b.Latency}
		switch {
		case errors.Is(b.Err, quorum.ErrNotSent):
			n.Vote = quorum.Pending
			fallthrough
		case b.Final != quorum.Granted:
			n.Err = nodeErr(round, b)
		}
		t.Nodes = append(t.Nodes, n)
	}
	r.log.Call(func() { r.cfg.Trace(t) })
}
