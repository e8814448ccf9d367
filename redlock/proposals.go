package redlock

import (
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// proposals are the rounds of one attempt: one, or with fencing one for each proposed token. All
// have the same value, and validity counts from the start of the first. The lanes keep their order.
type proposals struct {
	first  *quorum.Round[protocol.Operation]
	more   []*quorum.Round[protocol.Operation]
	winner *quorum.Round[protocol.Operation] // the last that found a majority; nil: none
}

func (p *proposals) last() *quorum.Round[protocol.Operation] {
	if len(p.more) > 0 {
		return p.more[len(p.more)-1]
	}
	return p.first
}

// sentToAll reports whether every node was sent the last proposal. If so, none is sent any more.
func (p *proposals) sentToAll() bool { return p.last().SentToAll() }

// done reports whether all lanes have finished with the proposals.
func (p *proposals) done() bool {
	for _, round := range p.rounds() {
		if !round.Over() {
			return false
		}
	}
	return true
}

// rounds lists the proposals that were made.
func (p *proposals) rounds() []*quorum.Round[protocol.Operation] {
	if p.first == nil {
		return nil
	}
	return append([]*quorum.Round[protocol.Operation]{p.first}, p.more...)
}

// withdraw drops the proposals to nodes whose lanes have not sent them. From then on ballots shows
// which nodes were sent a proposal.
func (p *proposals) withdraw() {
	p.first.Withdraw()
	for _, round := range p.more {
		round.Withdraw()
	}
}

// ballots lists each node's answer to the last proposal that it was sent.
func (p *proposals) ballots() []quorum.Ballot {
	ballots := p.first.Ballots()
	for _, round := range p.more {
		for i, later := range round.Ballots() {
			if later.Sent {
				ballots[i] = later
			}
		}
	}
	return ballots
}

// grantedBefore reports whether a node has granted one of the proposals before the last.
func (p *proposals) grantedBefore(node int) bool {
	for i := range p.more {
		round := p.first
		if i > 0 {
			round = p.more[i-1]
		}
		if round.Ballots()[node].Final == quorum.Granted {
			return true
		}
	}
	return false
}
