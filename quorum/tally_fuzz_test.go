package quorum_test

import (
	"slices"
	"testing"

	"github.com/quorumlock/redlock/quorum"
)

// The oracle plays every future of the pending votes to its end, and decides each by its own
// definition: won is more than half of the nodes. It shares no arithmetic with the tally.
//
// The first byte is the number of votes before the futures begin. The other bytes are the
// votes in order, so that the input includes the way to the end, along which a decided round
// must stay decided.
func FuzzTally(f *testing.F) {
	for _, s := range [][]byte{
		{},
		{0},
		{0, 1},
		{1, 2},
		{3, 1, 1, 1, 0, 0},
		{5, 3, 3, 2, 1, 0},
		{4, 3, 3, 2, 1},
		{4, 1, 1, 2, 2},
		{2, 1, 3},
		{4, 2, 2, 3, 1, 1},
		{9, 1, 1, 1, 1, 0, 2, 2, 3, 3},
		{0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		{8, 3, 3, 3, 3, 2, 2, 2, 2},
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		votes := []quorum.Vote{}
		for i := 1; i < len(input) && i <= 9; i++ {
			votes = append(votes, quorum.Vote(input[i]%4))
		}
		tally := quorum.Tally{N: len(votes)}
		soFar := make([]quorum.Vote, len(votes)) // all pending
		checkTally(t, tally, soFar)
		decided := quorum.Open
		for i, v := range votes {
			tally.Add(v)
			soFar[i] = v
			if decided != quorum.Open && tally.Outcome() != decided {
				t.Fatalf("%v: was %v and is %v", soFar, decided, tally.Outcome())
			}
			decided = tally.Outcome()
			if i+1 >= int(input[0]%10) {
				checkTally(t, tally, soFar)
			}
		}
	})
}

func checkTally(t *testing.T, tally quorum.Tally, votes []quorum.Vote) {
	t.Helper()
	wins, losses := futures(slices.Clone(votes))
	want := quorum.Open
	switch {
	case losses == 0:
		want = quorum.Won
	case wins == 0:
		want = quorum.Lost
	}
	if got := tally.Outcome(); got != want {
		t.Errorf("%v: %v, but %d futures win and %d lose", votes, got, wins, losses)
	}
	// Unavailable: even if all nodes that have not failed had granted, they would be no
	// majority.
	if got, want := tally.Unavailable(), !mostCould(votes, quorum.Failed); got != want {
		t.Errorf("%v: Unavailable is %v", votes, got)
	}
	// Rejected: even if all nodes that have not refused granted, they would be no majority.
	if got, want := tally.Rejected(), !mostCould(votes, quorum.Refused); got != want {
		t.Errorf("%v: Rejected is %v", votes, got)
	}
	pending := 0
	for _, v := range votes {
		if v == quorum.Pending {
			pending++
		}
	}
	if tally.Pending() != pending {
		t.Errorf("%v: %d pending", votes, tally.Pending())
	}
}

// futures counts how the completions of votes end. It tries both votes that are not grants,
// although they lead to the same result: the oracle must not know that.
func futures(votes []quorum.Vote) (wins, losses int) {
	i := slices.Index(votes, quorum.Pending)
	if i < 0 {
		if most(votes, func(v quorum.Vote) bool { return v == quorum.Granted }) {
			return 1, 0
		}
		return 0, 1
	}
	for _, v := range []quorum.Vote{quorum.Granted, quorum.Refused, quorum.Failed} {
		votes[i] = v
		w, l := futures(votes)
		wins, losses = wins+w, losses+l
	}
	votes[i] = quorum.Pending
	return wins, losses
}

// mostCould reports whether some set of nodes is a majority without a node that voted no.
func mostCould(votes []quorum.Vote, no quorum.Vote) bool {
	for set := range 1 << len(votes) {
		in := 0
		for i, v := range votes {
			if set>>i&1 == 1 {
				if v == no {
					in = -len(votes)
				}
				in++
			}
		}
		if in > len(votes)-in {
			return true
		}
	}
	return false
}

func most(votes []quorum.Vote, yes func(quorum.Vote) bool) bool {
	ayes := 0
	for _, v := range votes {
		if yes(v) {
			ayes++
		}
	}
	return ayes > len(votes)-ayes
}
