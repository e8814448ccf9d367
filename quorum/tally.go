// Package quorum owns counting and fan-out: what a majority is, when a round of
// votes is decided, and the lanes that carry operations to each node in order.
// It knows nothing of Redis.
//
// A round asks N nodes the same thing. It is decided as soon as no further vote
// can change it; the asker leaves at that moment and the lanes bring in the
// stragglers by themselves.
package quorum

import "fmt"

// Size is the number of nodes that make a majority of n: n/2+1. Any two
// majorities of the same n nodes share a node, for even n too; that shared node
// is why two clients cannot both hold a lock.
func Size(n int) int { return n/2 + 1 }

// Vote is one node's answer to one operation.
type Vote uint8

const (
	Pending Vote = iota // no answer yet
	Granted             // the node did it and said so
	Refused             // the node answered that it would not
	Failed              // no answer, or one that is neither
)

func (v Vote) String() string {
	switch v {
	case Pending:
		return "pending"
	case Granted:
		return "granted"
	case Refused:
		return "refused"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("Vote(%d)", uint8(v))
}

// Outcome is where a round stands.
type Outcome uint8

const (
	Open Outcome = iota // further votes can still change it, or could have: the caller left
	Won                 // a majority granted
	Lost                // a majority of grants is out of reach
)

func (o Outcome) String() string {
	switch o {
	case Open:
		return "open"
	case Won:
		return "won"
	case Lost:
		return "lost"
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// Tally counts the votes of one round of N nodes. The zero Tally of no nodes is
// lost: nobody is not a majority.
type Tally struct {
	N       int
	Granted int
	Refused int
	Failed  int
}

// Add counts one more vote. A pending vote is none.
func (t *Tally) Add(v Vote) {
	switch v {
	case Granted:
		t.Granted++
	case Refused:
		t.Refused++
	case Failed:
		t.Failed++
	}
}

// Pending is the number of nodes that have not voted.
func (t Tally) Pending() int { return t.N - t.Granted - t.Refused - t.Failed }

// Need is the number of grants that win: Size(N).
func (t Tally) Need() int { return Size(t.N) }

// Outcome is won at Size(N) grants and lost when the grants and the pending
// votes together no longer reach it, so a failure weighs as much as a refusal.
func (t Tally) Outcome() Outcome {
	switch {
	case t.N > 0 && t.Granted >= t.Need():
		return Won
	case t.Granted+t.Pending() < t.Need():
		return Lost
	}
	return Open
}

// Unavailable tells that more than N−Size(N) nodes failed: whatever the others
// said, no majority could have come together.
func (t Tally) Unavailable() bool { return t.Failed > t.N-t.Need() }

// Rejected tells that more than N−Size(N) nodes refused: even if every other
// node were to grant, it would not be a majority.
func (t Tally) Rejected() bool { return t.Refused > t.N-t.Need() }

// unsure tells that the round is not rejected, but the pending votes may have it so.
func (t Tally) unsure() bool {
	return !t.Rejected() && t.Refused+t.Pending() > t.N-t.Need()
}
