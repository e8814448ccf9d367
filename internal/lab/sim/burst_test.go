package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
)

// bursting finds a seed whose clients burst.
func bursting(t *testing.T, c Config) Config {
	t.Helper()
	for c.Seed = 1; ; c.Seed++ {
		if p := draw(t, c); p.bursts() && p.For >= 2*time.Second {
			return c
		}
	}
}

// Bursts contend for their keys, and the rules judge their locks as all others.
func TestBurstsAreContended(t *testing.T) {
	r := run(t, bursting(t, Config{Nodes: 3, Faults: []Kind{}}))
	require.Empty(t, r.Violations)
	holders := map[string]map[int]bool{}
	atOnce, most := map[time.Duration]int{}, 0
	denied := 0
	for _, e := range r.Events {
		if !strings.HasPrefix(e.Key, "b") {
			continue
		}
		switch e.Kind {
		case history.Asked:
			at := e.At.Truncate(time.Microsecond)
			atOnce[at]++
			most = max(most, atOnce[at])
		case history.Denied:
			denied++
		case history.Granted:
			if holders[e.Key] == nil {
				holders[e.Key] = map[int]bool{}
			}
			holders[e.Key][e.Client] = true
		}
	}
	assert.GreaterOrEqual(t, most, leastBurst)
	assert.Len(t, holders, burstKeys)
	assert.NotZero(t, denied)
	shared := 0
	for _, clients := range holders {
		if len(clients) > 1 {
			shared++
		}
	}
	assert.Greater(t, shared, burstKeys/2)
}

// A path that tears cuts some batches, at any byte, and lets others pass.
func TestTear(t *testing.T) {
	p := &path{}
	for d := range p.random {
		p.random[d] = stream(1, "path", d)
		require.Equal(t, 100, p.tear(faultlink.Direction(d), 100), "no fault")
		p.torn[d]++
		cuts, whole := map[int]bool{}, 0
		for range 1000 {
			if arrive := p.tear(faultlink.Direction(d), 5); arrive < 5 {
				cuts[arrive] = true
			} else {
				whole++
			}
		}
		assert.Len(t, cuts, 5)
		assert.InDelta(t, 1000*(1-tornOf[d]), whole, 60)
	}
}
