package quorum_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/quorum"
)

// A round that cannot be won waits for refusals that could make it rejected, but for no other
// votes.
func TestASureRoundWaitsForRefusals(t *testing.T) {
	const slow, slower = 10 * time.Millisecond, 20 * time.Millisecond
	after := func(d time.Duration, carry func([]*call)) func([]*call) {
		return func(calls []*call) {
			time.Sleep(d)
			carry(calls)
		}
	}
	for name, tc := range map[string]struct {
		nodes    []func([]*call)
		outcome  quorum.Outcome
		rejected bool
		took     time.Duration
	}{
		"a minority is down": {[]func([]*call){fails, fails, refuses, after(slow, refuses), after(slower, refuses)},
			quorum.Lost, true, slower},
		"a majority is down": {[]func([]*call){fails, fails, fails, refuses, after(slow, refuses)},
			quorum.Lost, false, 0},
		"too many granted": {[]func([]*call){fails, grants, grants, after(slow, fails), after(slower, refuses)},
			quorum.Lost, false, slower},
		"too few can refuse": {[]func([]*call){fails, after(slow, fails), after(slow, fails), refuses, after(slower, refuses)},
			quorum.Lost, false, slow},
		"they grant after all": {[]func([]*call){fails, fails, after(slow, grants), after(slow, grants), after(slower, grants)},
			quorum.Won, false, slower},
		"they hang": {[]func([]*call){fails, fails, refuses, hangs(3 * timeout), hangs(3 * timeout)},
			quorum.Lost, false, timeout},
		"an even number": {[]func([]*call){fails, fails, after(slow, refuses), after(slower, refuses)},
			quorum.Lost, true, slower},
		"all are up": {[]func([]*call){refuses, refuses, refuses, after(slow, refuses), after(slow, grants)},
			quorum.Lost, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var nodes []*node
				for _, carry := range tc.nodes {
					nodes = append(nodes, &node{carry: carry})
				}
				g := group(nodes...)
				r, took := run(g, spec{Op: "op", Sure: true})
				assert.Equal(t, tc.outcome, r.Tally().Outcome())
				assert.Equal(t, tc.rejected, r.Tally().Rejected())
				assert.Equal(t, tc.took, took)
				time.Sleep(time.Minute)
				g.Close(time.Minute)
			})
		})
	}
}
