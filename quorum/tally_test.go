package quorum_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/quorum"
)

func TestAnyTwoMajoritiesShareANode(t *testing.T) {
	for n := 1; n <= 1000; n++ {
		q := quorum.Size(n)
		require.Greater(t, 2*q, n, "two majorities of %d overlap", n)
		require.LessOrEqual(t, q, n, "all nodes are a majority")
		require.LessOrEqual(t, 2*(q-1), n, "one fewer would not overlap: %d is the smallest majority", q)
	}
}

// A round is decided exactly when every completion of its votes ends the same way. The test
// checks every combination of votes, for even N and N = 1 too (case 7).
func TestOutcomeAgreesWithEveryFuture(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for granted := 0; granted <= n; granted++ {
			for refused := 0; granted+refused <= n; refused++ {
				for failed := 0; granted+refused+failed <= n; failed++ {
					tally := quorum.Tally{N: n, Granted: granted, Refused: refused, Failed: failed}
					pending := n - granted - refused - failed
					wins, losses := 0, 0
					for more := 0; more <= pending; more++ {
						if 2*(granted+more) > n {
							wins++
						} else {
							losses++
						}
					}
					want := quorum.Open
					if losses == 0 {
						want = quorum.Won
					} else if wins == 0 {
						want = quorum.Lost
					}
					name := fmt.Sprintf("%+v", tally)
					require.Equal(t, want, tally.Outcome(), name)
					require.Equal(t, pending, tally.Pending(), name)
					require.Equal(t, 2*(n-failed) <= n, tally.Unavailable(), name)
					require.Equal(t, 2*(n-refused) <= n, tally.Rejected(), name)
				}
			}
		}
	}
}

func TestNobodyIsNotAMajority(t *testing.T) {
	assert.Equal(t, quorum.Lost, quorum.Tally{}.Outcome())
}

func TestVoteAndOutcomePrintTheirNames(t *testing.T) {
	assert.Equal(t, "pending granted refused failed Vote(9)",
		fmt.Sprint(quorum.Pending, quorum.Granted, quorum.Refused, quorum.Failed, quorum.Vote(9)))
	assert.Equal(t, "open won lost Outcome(9)",
		fmt.Sprint(quorum.Open, quorum.Won, quorum.Lost, quorum.Outcome(9)))
}
