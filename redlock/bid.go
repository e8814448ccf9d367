package redlock

import (
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// bid is what was asked of the nodes with one value: a round, or with fencing one for
// each token that was proposed. Validity counts from the first; the lanes keep them
// in order.
type bid struct {
	first *quorum.Round[protocol.Operation]
	more  []*quorum.Round[protocol.Operation]
	won   *quorum.Round[protocol.Operation] // the last that found a majority; nil: none
}

func (b *bid) last() *quorum.Round[protocol.Operation] {
	if len(b.more) > 0 {
		return b.more[len(b.more)-1]
	}
	return b.first
}

// sentToAll reports that every node was sent what was asked last, and so is sent
// nothing more.
func (b *bid) sentToAll() bool { return b.last().SentToAll() }

// withdraw takes back what no lane has sent. From then on ballots says where it was.
func (b *bid) withdraw() {
	b.first.Withdraw()
	for _, round := range b.more {
		round.Withdraw()
	}
}

// ballots lists each node's answer to the last round that it was sent.
func (b *bid) ballots() []quorum.Ballot {
	ballots := b.first.Ballots()
	for _, round := range b.more {
		for i, later := range round.Ballots() {
			if later.Sent {
				ballots[i] = later
			}
		}
	}
	return ballots
}

// grantedBefore reports that a node was heard to grant one of the rounds before the last.
func (b *bid) grantedBefore(node int) bool {
	for i := range b.more {
		round := b.first
		if i > 0 {
			round = b.more[i-1]
		}
		if round.Ballots()[node].Final == quorum.Granted {
			return true
		}
	}
	return false
}
