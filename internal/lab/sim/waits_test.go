package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// story sets the events' missing times, a step of sameTime apart, and their missing keys.
func story(of ...history.Event) []history.Event {
	for i := range of {
		if of[i].At == 0 {
			of[i].At = time.Duration(1+i) * sameTime
		}
		if of[i].Key == "" && of[i].Kind != history.Died {
			of[i].Key = "k"
		}
	}
	return of
}

func asks(client, op int) history.Event {
	return history.Event{Kind: history.Asked, Client: client, Op: op, Text: waits}
}

func gets(client, op int) history.Event {
	return history.Event{Kind: history.Granted, Client: client, Op: op, Until: 1 << 40}
}

func lets(client, op int) history.Event {
	return history.Event{Kind: history.Releasing, Client: client, Op: op, Until: 1 << 40}
}

func stood(client, node int, ticket int64) history.Event {
	o := order{verb: "enqueue", queue: "q", ticket: ticket}
	return history.Event{Kind: history.Voted, Client: client, Node: node, Text: "enqueue " + o.said([]byte("*6\r\n:0\r\n:99\r\n:0\r\n:0\r\n:0\r\n:0\r\n"), true)}
}

func always(history.Event) bool { return true }

func TestStarvation(t *testing.T) {
	fair := Plan{Fair: true, Nodes: 2, Clients: []ClientPlan{{Rate: 1}, {Rate: 1, Offset: time.Hour}, {Rate: 0.5}, {Rate: 1, Offset: 2 * time.Hour, From: time.Hour}}}
	denied := history.Event{Kind: history.Denied, Client: 1, Op: 1}
	tries := asks(2, 1)
	tries.Text = ""
	soon := asks(2, 1)
	soon.At = 4*sameTime - 1
	raised := []history.Event{asks(1, 1)}
	for ticket := range int64(maxRaises + 2) {
		raised = append(raised, stood(1, 1, 10+ticket), stood(1, 2, 10+ticket))
	}
	for name, c := range map[string]struct {
		plan   Plan
		events []history.Event
		broken string
	}{
		"overtaken":                       {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), gets(2, 1)), "client 1's #1 stood in the queue of all nodes at 60ms, and was overtaken by client 2's #1, which came at 80ms"},
		"overtaken by a mere try":         {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), tries, gets(2, 1)), "overtaken by client 2's #1"},
		"behind another of its own":       {fair, story(asks(1, 1), asks(1, 2), stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), gets(2, 1)), "client 1's #1 stood"},
		"behind one that gave up":         {fair, story(asks(1, 1), asks(1, 2), denied, stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), gets(2, 1)), "client 1's #2 stood"},
		"a clock is far too slow":         {Plan{Fair: true, Kinds: []Kind{SlowClient}, Nodes: 2, Clients: fair.Clients}, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), gets(2, 1)), ""},
		"nobody is fair":                  {Plan{Nodes: 2}, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), gets(2, 1)), ""},
		"did not stand everywhere":        {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 1, 10), asks(2, 1), gets(2, 1)), ""},
		"did not stand everywhere by one": {fair, story(asks(1, 1), stood(1, 1, 11), stood(1, 2, 10), asks(2, 1), gets(2, 1)), ""},
		"asked before it stood":           {fair, story(asks(1, 1), asks(2, 1), stood(1, 1, 10), stood(1, 2, 10), gets(2, 1)), ""},
		"asked when it stood":             {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), soon, gets(2, 1)), ""},
		"asked before it stood again":     {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), stood(1, 1, 11), stood(1, 2, 11), gets(2, 1)), ""},
		"overtaken when it stood again":   {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), stood(1, 1, 11), stood(1, 2, 11), asks(2, 1), gets(2, 1)), "overtaken by client 2's #1"},
		"overtaken by its own":            {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(1, 2), gets(1, 2)), ""},
		"overtaken by an earlier entry":   {fair, story(asks(2, 7), stood(2, 1, 9), asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), gets(2, 1)), ""},
		"overtaken by a later entry":      {fair, story(asks(2, 7), stood(2, 1, 9), asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), stood(2, 1, 11), gets(2, 1)), "overtaken by client 2's #1"},
		"overtaken by the last holder":    {fair, story(asks(2, 7), stood(2, 1, 9), asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), gets(2, 7), asks(2, 1), gets(2, 1)), "overtaken by client 2's #1"},
		"overtaken by a slow clock":       {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(3, 1), gets(3, 1)), ""},
		"overtaken again":                 {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(3, 1), gets(3, 1), asks(3, 2), gets(3, 2)), "overtaken by client 3's #2"},
		"had given up":                    {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), denied, gets(2, 1)), ""},
		"was dead":                        {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), history.Event{Kind: history.Died, Client: 1}, gets(2, 1)), ""},
		"another key":                     {fair, story(asks(1, 1), stood(1, 1, 10), stood(1, 2, 10), asks(2, 1), history.Event{Kind: history.Granted, Client: 2, Op: 1, Key: "l"}), ""},
		"moved back again and again":      {fair, story(raised...), fmt.Sprintf("took a higher ticket %d times", maxRaises+1)},
		"moved back as may be":            {fair, story(raised[:len(raised)-2]...), ""},
	} {
		found := c.plan.checkStarved(c.events, always)
		if c.broken == "" {
			assert.Empty(t, found, name)
			continue
		}
		require.Len(t, found, 1, name)
		assert.Equal(t, Starvation, found[0].Rule)
		assert.Contains(t, found[0].Text, c.broken, name)
		assert.Empty(t, c.plan.checkStarved(c.events, func(history.Event) bool { return false }), name)
	}
}

// All is quiet until the first fault, and on the key that is wanted after all faults.
func TestWhatIsQuiet(t *testing.T) {
	p := Plan{Faults: []FaultPlan{{Kind: Break, At: 50}, {Kind: Crash, At: 20, For: 40}}}
	assert.True(t, p.quiet(history.Event{At: 19, Key: "k1"}))
	assert.False(t, p.quiet(history.Event{At: 20, Key: "k1"}))
	assert.True(t, p.quiet(history.Event{At: 99, Key: lineKey}))
	assert.Equal(t, 60+settled, p.calm())
	p.Guard = time.Second
	assert.Equal(t, 60+settled+6*time.Second, p.calm())
	p.Config.Without = []int{1, 2}
	assert.True(t, p.quiet(history.Event{At: 99, Key: "k1"}))
	assert.Zero(t, p.calm())
}

func TestStuck(t *testing.T) {
	at := func(d time.Duration, e history.Event) history.Event { e.At = d; return e }
	kept := func(node, client, op int, until time.Duration) history.Event {
		return history.Event{Kind: history.Stored, Client: client, Op: op, Node: node, Until: until}
	}
	removed := func(node, client, op int) history.Event {
		return history.Event{Kind: history.Removed, Client: client, Op: op, Node: node}
	}
	held := gets(2, 1)
	held.Until = 10 * time.Second
	let := lets(2, 1)
	let.Until = held.Until
	did := history.Event{Kind: history.Granted, Client: 2, Op: 1, Until: 6} // a Do, whose end is not known
	done := history.Event{Kind: history.Released, Client: 2, Op: 1}
	gone := history.Event{Kind: history.Denied, Client: 1, Op: 1}
	const calm = time.Second
	p := Plan{Nodes: 3, Clients: []ClientPlan{{Rate: 1}, {Rate: 0.5}, {Rate: 1.1}}}
	for name, c := range map[string]struct {
		since  time.Duration // since when the key was free and wanted
		events []history.Event
	}{
		"since it asked":                      {2 * time.Second, story(at(2*time.Second, asks(1, 1)))},
		"since nothing fails":                 {calm, story(asks(1, 1))},
		"since it was released":               {4 * time.Second, story(asks(2, 1), held, at(2*time.Second, asks(1, 1)), at(4*time.Second, let))},
		"since it expired":                    {10 * time.Second, story(asks(2, 1), held, asks(1, 1))},
		"since a Do is over":                  {7 * time.Second, story(asks(2, 1), did, asks(1, 1), at(7*time.Second, done))},
		"since nodes are free":                {5 * time.Second, story(kept(1, 9, 9, 5*time.Second), kept(2, 9, 9, 8*time.Second), asks(1, 1))},
		"since a node was freed":              {3 * time.Second, story(kept(1, 9, 9, time.Hour), kept(2, 9, 9, time.Hour), asks(1, 1), at(3*time.Second, removed(2, 9, 9)))},
		"by what those who wait try":          {2 * time.Second, story(at(2*time.Second, asks(1, 1)), at(4*time.Second, kept(1, 1, 0, time.Hour)), at(4*time.Second, kept(2, 1, 0, time.Hour)))},
		"by a lock of who waits again":        {time.Hour, story(kept(1, 1, 7, time.Hour), kept(2, 1, 7, time.Hour), asks(1, 1))},
		"since others came, and one is there": {2 * time.Second, story(at(2*time.Second, asks(1, 1)), asks(3, 1), at(3*time.Second, gone))},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, p.checkStuck(c.events, calm, c.since+stuck))
			found := p.checkStuck(c.events, calm, c.since+stuck+1)
			require.Len(t, found, 1)
			require.Equal(t, Stuck, found[0].Rule)
			require.Equal(t, c.since+stuck, found[0].At)
			require.Contains(t, found[0].Text, fmt.Sprint("which has been free since ", c.since))
		})
	}
	end := time.Minute
	require.Len(t, p.checkStuck(story(asks(1, 1), at(calm+stuck+1, gets(1, 1))), calm, end), 1, "got it too late")
	require.Len(t, p.checkStuck(story(asks(1, 1), at(calm+stuck+1, history.Event{Kind: history.Died, Client: 1})), calm, end), 1, "died after the limit")
	require.Empty(t, p.checkStuck(story(asks(1, 1), at(calm+stuck, gone)), calm, end), "gave up")
	require.Empty(t, p.checkStuck(story(asks(1, 1), history.Event{Kind: history.Died, Client: 1}), calm, end), "died")
	slow, both := story(asks(2, 1)), story(asks(2, 1), asks(3, 1))
	require.Empty(t, p.checkStuck(slow, calm, calm+2*stuck), "by its own clock")
	require.Len(t, p.checkStuck(slow, calm, calm+2*stuck+1), 1)
	require.Len(t, p.checkStuck(both, calm, calm+stuck+1), 1, "one waiter is not that slow")
	line := asks(1, 1)
	line.Key = lineKey
	require.Empty(t, p.checkStuck(story(line), calm, calm+handover), "nothing disturbs it")
	require.Len(t, p.checkStuck(story(line), calm, calm+handover+1), 1)
	only := asks(1, 1)
	only.Text = ""
	require.Empty(t, p.checkStuck(story(only), calm, end), "does not wait")
	got := gets(3, 1)
	got.Until = 20 * time.Second
	require.Empty(t, p.checkStuck(story(asks(1, 1), at(10*time.Second, asks(3, 1)), at(15*time.Second, got)), calm, 20*time.Second+stuck), "another has got it")
}

// A node has a queue's flag exactly while it has the queue.
func TestFlagsAreThoseOfQueues(t *testing.T) {
	masters := inmemory.Start(t, 1)
	m := masters.Master(0)
	o := order{queue: queuePrefix + "{k}", flag: flagPrefix + "{k}"}
	server := m.Miniredis()
	assert.Empty(t, unlike(m, o))
	_, err := server.ZAdd(o.queue, 17, "i k")
	require.NoError(t, err)
	assert.Equal(t, "left a queue without its flag", unlike(m, o))
	require.NoError(t, server.Set(o.flag, "1"))
	server.SetTTL(o.flag, queueLife)
	assert.Empty(t, unlike(m, o))
	server.Del(o.queue)
	assert.Equal(t, "left the flag of a queue that is gone", unlike(m, o))
	server.SetTTL(o.flag, time.Second)
	assert.Empty(t, unlike(m, o), "it is about to go")
}

// noQueues finds what is left of a queue on any node.
func TestPlacesThatAreLeftAreFound(t *testing.T) {
	w := &world{plan: Plan{Nodes: 2}, masters: inmemory.Start(t, 2)}
	w.noQueues("that")
	require.Empty(t, w.violations)
	server := w.masters.Master(1).Miniredis()
	require.NoError(t, server.Set("k", "v"))
	require.NoError(t, server.Set(flagPrefix+"{k}", "1"))
	_, err := server.ZAdd(queuePrefix+"{k}", 17, "i k")
	require.NoError(t, err)
	w.noQueues("that")
	require.Len(t, w.violations, 2)
	for _, v := range w.violations {
		assert.Equal(t, Leftover, v.Rule)
		assert.Contains(t, v.Text, "node 2 still has")
		assert.Contains(t, v.Text, "after that")
	}
}
