package main

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// quick runs everything for a moment, and checks that it runs and that holders are alone.
func quick(t *testing.T, args ...string) (options, *bytes.Buffer) {
	t.Helper()
	o, _, err := parse(append([]string{
		"-for", "300ms", "-waits", "50", "-freeze", "300ms", "-watch", "20s", "-masters", "3",
		"-replicas", "1", "-look", "100ms", "-looks", "1",
	}, args...), &bytes.Buffer{})
	require.NoError(t, err)
	var out bytes.Buffer
	o.out = &out
	return o, &out
}

func TestItRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("needs redis-server; left out with -short")
	}
	for only, want := range map[string]string{
		"^sick/(slow-5|minority-1-of-2)$":  "| 2 masters, reaches 1 |",
		"^overload$":                       "| before the hang |",
		"^foreign/(redsync-2-2|beat-1-1)$": "| 2 of ours and 2 of redsync, ",
		"^look$":                           "| 2 are silent |",
	} {
		t.Run(only, func(t *testing.T) {
			t.Parallel()
			o, out := quick(t, "-only", only)
			require.NoError(t, measure(t.Context(), o))
			assert.Contains(t, out.String(), want)
			assert.Equal(t, 1, strings.Count("\n"+out.String(), "\n### "), "one table")
		})
	}
}

func TestNodeRedlockTakesTheKeysThatWeTake(t *testing.T) {
	if testing.Short() {
		t.Skip("needs redis-server; left out with -short")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(errNoNode)
		}
	}
	node, err := installNode(t.Context())
	if err != nil {
		t.Skip(err) // without a network
	}
	t.Cleanup(node.remove)
	const key = "orders"
	servers := redisserver.Start(t, 3)
	r, err := open(addresses(servers), redlock.Config{NodeTimeout: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	l, err := r.TryAcquire(t.Context(), key, time.Hour)
	require.NoError(t, err)
	theirs := new(tally)
	stop, err := node.start(t.Context(), addresses(servers), []nodeKey{{key, theirs}}, time.Hour, 0)
	require.NoError(t, err)
	count := func() int { return theirs.count(time.Time{}, time.Now()) }
	watch := overloadWatch{}
	for _, s := range servers {
		watch.clients = append(watch.clients, s.Client())
	}
	require.Eventually(t, func() bool {
		scripts, err := watch.scripts(t.Context())
		return err == nil && slices.Min(scripts) >= 2
	}, time.Minute, time.Millisecond, "it has tried")
	assert.Zero(t, count(), "it is refused while we hold it")
	require.NoError(t, l.Release(t.Context()))
	require.Eventually(t, func() bool { return count() == 1 }, time.Minute, time.Millisecond)
	_, err = r.TryAcquire(t.Context(), key, time.Hour)
	require.ErrorIs(t, err, redlock.ErrHeld)
	require.NoError(t, stop())
}

func TestAGapReachesFromTheStartToTheEnd(t *testing.T) {
	at := time.Unix(100, 0)
	one, other := new(tally), new(tally)
	one.granted(at.Add(-time.Second), 0)
	assert.Equal(t, 10*time.Second, gap(at, at.Add(10*time.Second), one, other), "no lock in it")
	one.granted(at.Add(2*time.Second), 0)
	other.granted(at.Add(5*time.Second), 0)
	assert.Equal(t, 5*time.Second, gap(at, at.Add(10*time.Second), one, other))
	assert.Equal(t, 8*time.Second, gap(at, at.Add(10*time.Second), one))
	assert.Equal(t, 1, one.count(at, at.Add(10*time.Second)))
}
