//go:build linux

package chaos

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/lab/history"
)

func TestTrueTime(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		machine := trueTime{monotonic()}
		h := hold{client: &client{clock: machine, config: clientConfig{Ahead: ahead}}}
		skewed := clock.Skewed(clock.System(), 1, ahead)
		before := machine.now()
		instant := skewed.Now()
		after := machine.now()
		got := h.trueTime(instant)
		require.LessOrEqual(t, got, after, "later than it was")
		require.GreaterOrEqual(t, got, before-exact)
	}
}

// The seed decides the draws, and the terms decide which kinds are drawn.
func TestDraws(t *testing.T) {
	for _, terms := range []terms{plain, fenced, guarded, unguarded} {
		kinds := kindsBut(terms.without...)
		require.Len(t, kinds, len(kindsBut())-len(terms.without), "a name that no kind has")
		one, same := rand.New(rand.NewPCG(7, 0)), rand.New(rand.NewPCG(7, 0))
		drawn := map[string]bool{}
		for range 1000 {
			d := drawFault(one, kinds, 5, 4)
			require.Equal(t, d, drawFault(same, kinds, 5, 4))
			drawn[d.kind.name] = true
		}
		require.Len(t, drawn, len(kinds))
		for _, name := range append(terms.without, amnesia.name) {
			require.NotContains(t, drawn, name)
		}
	}
}

// The masters that forget and the masters that are cut off before are disjoint, and without
// the latter the rest is a majority.
func TestDrawsOfAmnesia(t *testing.T) {
	for masters := 1; masters <= 7; masters++ {
		dice, most := rand.New(rand.NewPCG(7, forgetStream)), 0
		for range 1000 {
			gap, forget := drawAmnesia(dice, masters)
			require.NotEmpty(t, forget.nodes)
			require.Empty(t, intersection(gap.nodes, forget.nodes))
			require.Greater(t, 2*(masters-len(gap.nodes)), masters)
			require.Positive(t, forget.pause)
			most = max(most, len(forget.nodes))
		}
		require.Equal(t, max(1, min(2, (masters-1)/2)), most)
	}
}

func intersection(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(i int) bool { return !slices.Contains(b, i) })
}

// Clocks are as far apart as the terms say, and no further.
func TestDrawsOfClocks(t *testing.T) {
	require.Less(t, 2*guarded.skew, guard-nodeTimeout, "what tokens rest on where fences are forgotten")
	require.Equal(t, guarded.skew, unguarded.skew)
	for _, terms := range []terms{plain, fenced, guarded} {
		slowest, fastest := time.Duration(0), time.Duration(0)
		for number := range 1000 {
			ahead := terms.ahead(7, number)
			slowest, fastest = min(slowest, ahead), max(fastest, ahead)
		}
		require.Equal(t, []time.Duration{-terms.skew, terms.skew}, []time.Duration{slowest, fastest})
	}
}

func TestWhatStaysOnMasters(t *testing.T) {
	const record, fence = "redlock:server", "redlock:fence:{left}"
	for _, tc := range []struct {
		terms terms
		stays []string
	}{
		{plain, nil},
		{fenced, []string{fence}},
		{guarded, []string{record, fence}},
		{unguarded, []string{fence}},
	} {
		var stays []string
		for _, key := range []string{"left", record, fence, "redlock:fence:{other}", "redlock:fence:left"} {
			if tc.terms.keeps(key) {
				stays = append(stays, key)
			}
		}
		require.Equal(t, tc.stays, stays, tc.terms.name)
	}
}

func TestVerdict(t *testing.T) {
	violation := func(rule string) history.Violation { return history.Violation{Rule: rule} }
	require.Equal(t, "0 violations", broken(nil))
	require.Equal(t, "3 violations: exclusion 2, fencing 1", broken([]history.Violation{
		violation(history.Exclusion), violation(history.Fencing), violation(history.Exclusion),
	}))

	granted := func(at time.Duration) history.Event { return history.Event{At: at, Kind: history.Granted} }
	events := []history.Event{granted(1), granted(3), {At: 5, Kind: history.Denied}, granted(9), granted(12)}
	for _, tc := range []struct {
		from, to time.Duration
		n        int
		drought  time.Duration
	}{
		{0, 20, 4, 8}, {2, 10, 2, 6}, {3, 12, 2, 6}, {13, 20, 0, 7},
	} {
		n, drought := grants(events, tc.from, tc.to)
		require.Equal(t, tc.n, n, "%v", tc)
		require.Equal(t, tc.drought, drought, "%v", tc)
	}
}

// A stopped client whose parent has died would stay forever. The kernel ends such a client;
// one that runs ends when its input does, which this test checks.
func TestClientEndsWithItsInput(t *testing.T) {
	m, err := startMember(clientConfig{
		Client: 1, Epoch: monotonic(), Hold: time.Minute,
		URLs: []string{"redis://127.0.0.1:1"}, // where nothing listens
	}, func(history.Event) {})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.kill() })
	require.NoError(t, m.orders.Close())
	<-m.done
	require.Equal(t, abandoned, m.cmd.ProcessState.ExitCode(), m.stderr.String())
}
