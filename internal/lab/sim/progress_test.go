package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// turn is a lock in a part of a trial: when it is asked for, granted and released.
type turn struct {
	client               int
	asked, granted, over time.Duration
}

// played returns the events of a control and a trial, which take ten seconds each.
func played(control, trial []turn) (events []history.Event, parts [2]part) {
	parts = [2]part{{controlKey, 0, 10 * time.Second}, {trialKey, 10 * time.Second, 20 * time.Second}}
	op := 0
	for i, turns := range [2][]turn{control, trial} {
		for _, t := range turns {
			op++
			add := func(kind history.Kind, at time.Duration) {
				events = append(events, history.Event{At: parts[i].from + at, Kind: kind, Client: t.client, Op: op, Key: parts[i].key, Until: parts[i].to})
			}
			add(history.Asked, t.asked)
			if t.granted > 0 {
				add(history.Granted, t.granted)
				add(history.Releasing, t.over)
			}
		}
	}
	history.Sort(events)
	return events, parts
}

// rounds has clients take turns of a given length between two instants. Each asks again at
// the end of its last turn.
func rounds(from, to, each time.Duration, clients ...int) (turns []turn) {
	last := map[int]time.Duration{}
	for _, c := range clients {
		last[c] = from
	}
	for i := 0; from+each <= to; i++ {
		c := clients[i%len(clients)]
		turns = append(turns, turn{c, last[c], from + time.Millisecond, from + each})
		from += each
		last[c] = from
	}
	return turns
}

func TestProgress(t *testing.T) {
	const s = time.Second
	sick := Plan{Trial: &TrialPlan{Kind: SlowLink, Well: 2}, Clients: make([]ClientPlan, 3)}
	able := Plan{Trial: &TrialPlan{Kind: SlowLink, Well: 2, Able: true}, Clients: make([]ClientPlan, 3)}
	apart := Plan{Trial: &TrialPlan{Kind: DaysApart, Well: 2}, Clients: make([]ClientPlan, 3)}
	foreign := Plan{Trial: &TrialPlan{Kind: Foreign, Well: 1}, Clients: make([]ClientPlan, 2)}
	join := func(of ...[]turn) (all []turn) {
		for _, turns := range of {
			all = append(all, turns...)
		}
		return all
	}
	control := rounds(0, 10*s, s/2, 1, 2)
	for name, c := range map[string]struct {
		plan           Plan
		control, trial []turn
		broken         []string
	}{
		"as in the control":        {sick, control, join(control, []turn{{client: 3}}), nil},
		"nobody wanted it":         {sick, rounds(0, s, s/2, 1), rounds(9*s, 10*s, s/2, 1), nil},
		"only the sick wanted it":  {sick, rounds(0, s, s/2, 1), join([]turn{{client: 3}}, rounds(9*s, 10*s, s/2, 1)), nil},
		"a gap in the middle":      {sick, control, join(rounds(0, 4*s, s/2, 1, 2), rounds(6*s+2*time.Millisecond, 10*s, s/2, 1, 2), []turn{{client: 1, asked: 4 * s}}), []string{"nobody got the key for 2.003s from 14s on"}},
		"a gap in which one holds": {sick, control, join(rounds(0, 4*s, s/2, 1, 2), []turn{{3, 0, 4 * s, 6 * s}}, rounds(6*s, 10*s, s/2, 1, 2)), nil},
		"a gap at the end":         {sick, control, join(rounds(0, 7*s, s/2, 1, 2), []turn{{client: 1, asked: 7 * s}}), []string{"nobody got the key for 3s from 17s on"}},
		"one waits in vain":        {sick, control, join(rounds(0, 10*s, s/2, 1), []turn{{client: 2, asked: 5 * s}}), []string{"client 2 waited for 5s"}},
		"the sick waits in vain":   {sick, control, join(rounds(0, 10*s, s/2, 1, 2), []turn{{client: 3, asked: 1}}), nil},
		"the able waits in vain":   {able, control, join(rounds(0, 10*s, s/2, 1, 2), []turn{{client: 3, asked: 1}}), []string{"client 3 waited for 9.999999999s"}},
		"half of the turns":        {sick, control, rounds(0, 10*s, s, 1, 2), nil},
		"a third of the turns":     {sick, control, rounds(0, 10*s, 3*s/2, 1, 2), []string{"there were 6 turns, and 20 in the control"}},
		"a slow one is able":       {able, control, rounds(0, 10*s, 3*s/2, 1, 2, 3), nil},
		"one of three has nothing": {apart, control, rounds(0, 10*s, s/2, 1, 2), []string{"client 3 had 0 turns, and the mean was 6"}},
		"all of three have theirs": {apart, control, rounds(0, 10*s, s/2, 1, 2, 3), nil},
		"beside foreigners": {
			foreign, join(rounds(0, 10*s, s, 1, 2), []turn{{client: 1, asked: s}}), rounds(0, 10*s, s, 1, 2), nil,
		},
		"found out about foreigners by a look": {
			foreign, rounds(0, 10*s, s/2, 1), rounds(0, 10*s, s/2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2), nil,
		},
		"too few turns beside foreigners": {
			foreign, rounds(0, 10*s, s, 1, 2), rounds(0, 10*s, s, 1, 2, 2, 2),
			[]string{"client 1 had 3 turns, and 5 when it polled", "client 1 waited for 3.001s, and for at most 1.001s when it polled"},
		},
	} {
		events, parts := played(c.control, c.trial)
		found := c.plan.checkProgress(events, parts)
		require.Len(t, found, len(c.broken), "%s: %v", name, found)
		for i, v := range found {
			assert.Equal(t, Progress, v.Rule)
			assert.Contains(t, v.Text, c.broken[i], name)
		}
	}
	assert.Empty(t, Plan{}.checkProgress(nil, [2]part{}), "there was no trial")
	assert.Empty(t, sick.checkProgress(nil, [2]part{}), "the trial did not take place")
}
