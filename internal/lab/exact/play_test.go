package exact

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scenario"
)

func parse(t *testing.T, query string) scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse(query)
	require.NoError(t, err)
	return s
}

// forgets is a scenario in which three of five masters lose a lock that is held.
const forgets = "do=100-acquire-c1,1500-acquire-c2,2000-forget-m1,2000-forget-m2,2000-forget-m3&until=4000"

func TestAScenarioMakesOneHistory(t *testing.T) {
	first, err := open(t).Play(t.Context(), parse(t, forgets))
	require.NoError(t, err)
	second, err := open(t).Play(t.Context(), parse(t, forgets))
	require.NoError(t, err)
	assert.Equal(t, first, second)
	assert.Equal(t, []string{history.Exclusion}, first.Rules())
	assert.Equal(t, []int{1, 2}, first.Violations[0].Clients)
	assert.NotEmpty(t, first.Violations[0].Excused)
	assert.NotEmpty(t, first.Violations[0].Remedy)

	guarded, err := open(t).Play(t.Context(), parse(t, forgets+"&guard=1"))
	require.NoError(t, err)
	assert.Empty(t, guarded.Rules())
}

// What happens until a time does not depend on what is done later. So a page can go back to a time, and
// go on differently from there.
func TestTheBeginningOfAScenarioStays(t *testing.T) {
	lab := open(t)
	const begin = "fair=1&fencing=1&draw=1&do=100-kill-m1,1500-restart-m1"
	short, err := lab.Play(t.Context(), parse(t, begin+"&until=5000"))
	require.NoError(t, err)
	long, err := lab.Play(t.Context(), parse(t, begin+",5002-cut-c1-m2,5100-die-c2,5400-start-c2,6000-pause-c3&until=8000"))
	require.NoError(t, err)
	require.Greater(t, len(long.Events), len(short.Events))
	assert.Equal(t, short.Events, long.Events[:len(short.Events)])
}

func TestPlayEndsWithItsContext(t *testing.T) {
	why := errors.New("no time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := open(t).Play(ctx, parse(t, forgets))
	assert.ErrorIs(t, err, why)
}
