package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseQueryReadsWhatQueryWrites(t *testing.T) {
	for _, c := range []Config{
		{},
		{Seed: 42, Nodes: 3, Clients: 2, For: 1500 * time.Millisecond, Faults: []Kind{Amnesia, Crash}, Fencing: On, Guard: Off, Fair: On, Ways: Off, Without: []int{1}},
		{Seed: 7, Faults: []Kind{}},
	} {
		got, scenario, err := ParseQuery(c.Query())
		require.NoError(t, err, c.Query())
		assert.Nil(t, scenario)
		assert.Equal(t, c, got)
	}
	_, scenario, err := ParseQuery("nodes=3")
	require.NoError(t, err)
	assert.Equal(t, 3, scenario.Nodes)
}

func TestParseQueryRefuses(t *testing.T) {
	for query, want := range map[string]string{
		"sim=x":              `sim is "x"`,
		"sim=1&nodes=100":    "nodes is 100",
		"sim=1&clients=two":  `clients is "two"`,
		"sim=1&for=1":        `for is "1"`,
		"sim=1&for=2m":       "for is 2m0s",
		"sim=1&faults=fire":  `faults is "fire"`,
		"sim=1&guard=1":      `guard is "1": want on or off`,
		"sim=1&without=1,x":  `without is "1,x"`,
		"sim=1&without=1000": "without has 1000",
		"sim=1&sim=2":        "sim is given 2 times",
		"sim=1&do=0-kill-m1": "do is no field of a seed's run",
		"nodes=0":            `nodes is "0"`,
		"sim=1;nodes=2":      "not written as in a web address",
	} {
		_, _, err := ParseQuery(query)
		assert.ErrorContains(t, err, want, query)
	}
}
