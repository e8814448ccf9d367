package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseReadsWhatStringWrites(t *testing.T) {
	for _, query := range []string{
		"",
		"seed=18446744073709551615&nodes=9&clients=1&ttl=1m0s&timeout=10ms&latency=0s&fencing=1&guard=1&fair=1&draw=1&slots=2&until=600000",
		"do=0-kill-m1,0-restart-m1,2-forget-m2,4-hang-m3,4-resume-m3,6-ahead-m4-1500,8-back-m5-0",
		"do=0-cut-c1-m1,0-cutask-c1,0-cutanswer-m1,0-lose-c3-m5,2-slow-m2-300,4-heal-c1",
		"do=0-pause-c1,0-suspend-c2,2-continue-c1,4-die-c1,6-start-c1",
		"do=0-acquire-c1,2-try-c2,4-release-c1,6-extend-c1,8-keep-c1,10-giveup-c2,12-write-c1,14-work-c1,600000-rest-c1",
	} {
		s, err := Parse(query)
		require.NoError(t, err, query)
		assert.Equal(t, query, s.String())
	}
	s, err := Parse("")
	require.NoError(t, err)
	assert.Equal(t, Default(), s)
	s, err = Parse("fencing=0&nodes=3&do=2-slow-c1-m2-300")
	require.NoError(t, err)
	assert.Equal(t, []Action{{At: Tick, Verb: Slow, Client: 1, Node: 2, Arg: 300 * time.Millisecond}}, s.Actions)
	assert.False(t, s.Fencing)
	assert.Equal(t, 2, s.Quorum())
}

// Each error names the field or the action that is wrong.
func TestParseRefuses(t *testing.T) {
	for query, want := range map[string]string{
		"nodes=0":                   `nodes is "0", want a number from 1 to 9`,
		"nodes=10":                  `nodes is "10"`,
		"clients=many":              `clients is "many"`,
		"slots=-1":                  `slots is "-1"`,
		"seed=-1":                   `seed is "-1"`,
		"ttl=5":                     `ttl is "5", want a duration from 100ms to 1m0s`,
		"ttl=1h":                    `ttl is "1h"`,
		"timeout=1.5ms":             `timeout is "1.5ms"`,
		"latency=-1ms":              `latency is "-1ms"`,
		"fencing=yes":               `fencing is "yes", want 1 or 0`,
		"until=600001":              `until is "600001"`,
		"nodes=3&nodes=4":           "nodes is given 2 times",
		"node=3&zoo=1":              "node is no field of a scenario",
		"%zz":                       "not written as in a web address",
		"do=kill-m1":                `action "kill-m1": want it to begin with its time`,
		"do=1-kill-m1":              "an even number of milliseconds",
		"do=-2-kill-m1":             "want it to begin with its time",
		"do=600002-kill-m1":         "want it to begin with its time",
		"do=4-kill-m1,2-kill-m2":    "it comes after one at 4 ms",
		"do=0-burn-m1":              `action "burn-m1": "burn" is nothing that can be done`,
		"do=0-kill":                 "want a master",
		"do=0-kill-c1":              "want a master",
		"do=0-kill-m6":              "there is no master 6",
		"do=0-pause-c4":             "there is no client 4",
		"do=0-pause-m1":             "want a client",
		"do=0-cut":                  "want a link",
		"do=0-cut-m1-c1":            `"c1" is neither a client`,
		"do=0-kill-m":               `"m" is neither a client`,
		"do=0-kill-":                `"" is neither a client`,
		"do=0-kill-m1-m2":           `"m2" is neither a client`,
		"do=0-slow-c1":              "want a target and milliseconds",
		"do=0-slow-c1-fast":         `"fast" is no number of milliseconds`,
		"do=0-ahead-m1-3600001":     "is no number of milliseconds from 0 to 3600000",
		"clients=2&do=0-acquire-c3": "there is no client 3",
	} {
		_, err := Parse(query)
		assert.ErrorContains(t, err, want, query)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("seed=1&nodes=3&do=0-kill-m1,2-slow-c1-m2-300&until=10")
	f.Fuzz(func(t *testing.T, query string) {
		s, err := Parse(query)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		require.NoError(t, err)
		assert.Equal(t, s, again)
	})
}

func TestEnd(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"":                          10 * time.Second,
		"do=4000-kill-m1":           14 * time.Second,
		"do=4000-kill-m1&until=500": 500 * time.Millisecond,
		"draw=1":                    40 * time.Second,
	} {
		s, err := Parse(query)
		require.NoError(t, err)
		assert.Equal(t, want, s.End(), query)
	}
}

// The seed draws actions that can be done, in order, and ends each fault that it begins.
func TestDrawn(t *testing.T) {
	kinds := map[Verb]bool{}
	for seed := range uint64(50) {
		s := Default()
		s.Seed, s.Draw = seed, true
		drawn := s.Drawn()
		assert.Equal(t, drawn, s.Drawn())
		last := time.Duration(0)
		balance := 0
		for _, a := range drawn {
			kinds[a.Verb] = true
			again, err := s.ParseAction(a.String())
			require.NoError(t, err)
			again.At = a.At
			assert.Equal(t, a, again)
			assert.GreaterOrEqual(t, a.At, last)
			assert.Zero(t, a.At%Tick)
			last = a.At
			switch a.Verb {
			case Kill, Hang, Cut, CutAnswer, Lose, Slow, Pause:
				balance++
			case Restart, Resume, Heal, Continue:
				balance--
			}
		}
		assert.Zero(t, balance)
	}
	assert.Len(t, kinds, 12)
	assert.NotContains(t, kinds, Forget)
	assert.Empty(t, Default().Drawn())
}
