// Package quorum counts votes and fans operations out to nodes: what a majority is, when a
// round of votes is decided, and the lanes that carry operations to each node in order. It
// knows nothing of Redis.
//
// A round asks N nodes the same thing. It is decided as soon as no further vote can change the
// outcome. The caller then returns, and the lanes collect the remaining answers.
package quorum

import "fmt"

// Size returns the number of nodes in a majority of n: n/2+1. Any two majorities share a node,
// for even n too, so two clients cannot both hold a lock.
func Size(n int) int { return n/2 + 1 }

// Vote is one node's answer to one operation.
type Vote uint8

const (
	Pending Vote = iota // no answer yet
	Granted             // the node did it and said so
	Refused             // the node answered that it would not do it
	Failed              // no answer, or one that neither grants nor refuses
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

// Outcome is the state of a round: open, won or lost.
type Outcome uint8

const (
	Open Outcome = iota // further votes can still change it, or could have when the caller left
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

// Tally counts the votes of one round of N nodes. The zero Tally, which has no nodes, is lost.
type Tally struct {
	N       int
	Granted int
	Refused int
	Failed  int
}

// Add counts one more vote. It ignores a pending one.
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

// Pending returns the number of nodes that have not voted.
func (t Tally) Pending() int { return t.N - t.Granted - t.Refused - t.Failed }

// Need returns the number of grants that win: Size(N).
func (t Tally) Need() int { return Size(t.N) }

// Outcome returns Won once Size(N) nodes have granted, and Lost once grants and pending votes
// together are fewer than that. A failure thus weighs as much as a refusal.
func (t Tally) Outcome() Outcome {
	switch {
	case t.N > 0 && t.Granted >= t.Need():
		return Won
	case t.Granted+t.Pending() < t.Need():
		return Lost
	}
	return Open
}

// Unavailable reports whether more than N−Size(N) nodes failed. If so, no majority was
// possible, whatever the other nodes answered.
func (t Tally) Unavailable() bool { return t.Failed > t.N-t.Need() }

// Rejected reports whether more than N−Size(N) nodes refused. If so, no majority is possible,
// even if every other node grants.
func (t Tally) Rejected() bool { return t.Refused > t.N-t.Need() }

// unsure reports whether the round is not rejected, but pending votes may still reject it.
func (t Tally) unsure() bool {
	return !t.Rejected() && t.Refused+t.Pending() > t.N-t.Need()
}
