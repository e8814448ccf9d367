package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// wireHealth is the object of --json, as another program would declare it.
type wireHealth struct {
	Nodes []struct {
		Addr, State, Role, Version string
		RunID                      string `json:"run_id"`
		Uptime                     *int64 `json:"uptime_s"`
		RoundTrip                  int64  `json:"round_trip_us"`
		Quarantine                 int64  `json:"quarantine_us"`
		Clock                      *struct {
			Offset int64 `json:"offset_us"`
			Within int64 `json:"within_us"`
		}
		Appendonly, Appendfsync string
		Save                    *string
		Maxmemory               *int64
		Policy                  string `json:"maxmemory_policy"`
		Timeout                 *int64 `json:"timeout_s"`
	}
	Warnings       []warning
	Quorum, Voting int
}

func (h *wireHealth) states() (all []string) {
	for _, n := range h.Nodes {
		all = append(all, n.State)
	}
	return all
}

func (h *wireHealth) codes() (all []string) {
	for _, w := range h.Warnings {
		all = append(all, w.Code)
	}
	return all
}

// nodesOf runs the command with and without --json. Both outputs must agree.
func nodesOf(t *testing.T, urls []string, flags ...string) (code int, h *wireHealth) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	args := append([]string{"nodes", "--nodes", strings.Join(urls, ",")}, flags...)
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), clitest.Program(Command()), append(args, "--json"), &out, &errs)
	require.NoError(t, json.Unmarshal(out.Bytes(), &h), out.String()+errs.String())
	assert.Equal(t, 1, strings.Count(out.String(), "\n"))
	assert.Contains(t, out.String(), `"warnings":[`, "a list, also if there are none")
	assert.NotContains(t, out.String()+errs.String(), "s3cret")
	if code == cli.ExitOK {
		assert.Empty(t, errs.String())
	} else {
		assert.Equal(t, cli.ExitNoQuorum, code)
		clitest.AssertOneLine(t, errs.String())
	}

	out.Reset()
	errs.Reset()
	assert.Equal(t, code, cli.Run(t.Context(), clitest.Program(Command()), args, &out, &errs))
	assert.Equal(t, code == cli.ExitOK, strings.Contains(out.String(), " can vote, "))
	for _, w := range h.Warnings {
		assert.Contains(t, out.String(), "   "+w.Code)
	}
	assert.NotContains(t, out.String()+errs.String(), "s3cret")
	clitest.AssertFits(t, out.String())
	clitest.NothingLeft(t, ignore)
	return code, h
}

// In-memory masters have no CONFIG, and little of INFO. Most values are unknown, and that is no
// problem.
func TestMastersThatTellLittleAreFit(t *testing.T) {
	masters := redlocktest.Start(t, 5)
	code, h := nodesOf(t, masters.URLs())
	assert.Equal(t, cli.ExitOK, code)
	assert.Empty(t, h.Warnings)
	assert.Equal(t, 3, h.Quorum)
	assert.Equal(t, 5, h.Voting)
	require.Len(t, h.Nodes, 5)
	for i, n := range h.Nodes {
		assert.Equal(t, masters.Master(i).Addr(), n.Addr)
		assert.Equal(t, stateOK, n.State)
		assert.Equal(t, "master", n.Role)
		assert.Equal(t, "7.0.15", n.Version)
		assert.Len(t, n.RunID, 40)
		assert.NotNil(t, n.Uptime)
		assert.Positive(t, n.RoundTrip)
		require.NotNil(t, n.Clock)
		assert.Less(t, max(n.Clock.Offset, -n.Clock.Offset), n.Clock.Within+1000, "they have our clock; miniredis' has milliseconds")
		assert.Empty(t, n.Appendonly+n.Appendfsync+n.Policy)
		assert.Nil(t, n.Save)
		assert.Nil(t, n.Maxmemory)
		assert.Nil(t, n.Timeout)
	}
	for _, m := range masters.All() {
		assert.Empty(t, m.Miniredis().Keys(), "it leaves nothing")
	}
}

func TestAMinorityThatIsGoneIsAWarning(t *testing.T) {
	masters := redlocktest.Start(t, 5)
	masters.Kill(1, 3)
	code, h := nodesOf(t, masters.URLs())
	assert.Equal(t, cli.ExitOK, code)
	assert.Equal(t, []string{"ok", "unreachable", "ok", "unreachable", "ok"}, h.states())
	assert.Equal(t, []string{"unreachable", "unreachable"}, h.codes())
	assert.Equal(t, masters.Master(3).Addr(), h.Warnings[1].Node)
	assert.Contains(t, h.Warnings[1].Text, "connection refused")
	assert.Equal(t, 3, h.Voting)

	masters.Kill(0)
	code, h = nodesOf(t, masters.URLs())
	assert.Equal(t, cli.ExitNoQuorum, code)
	assert.Equal(t, 2, h.Voting)
}

func TestPasswords(t *testing.T) {
	masters := redlocktest.Start(t, 3)
	urls := masters.URLs()
	for _, m := range masters.All() {
		m.SetPassword("s3cret")
	}
	urls[1] = masters.Master(1).URL()
	urls[2] = strings.Replace(urls[2], "redis://", "redis://:s3cret-wrong@", 1)
	code, h := nodesOf(t, urls)
	assert.Equal(t, cli.ExitNoQuorum, code)
	assert.Equal(t, []string{"password", "ok", "password"}, h.states())
	require.Equal(t, []string{"password", "password"}, h.codes())
	assert.Contains(t, h.Warnings[0].Text, "URL has none")
	assert.Contains(t, h.Warnings[1].Text, "refuses")
}

func TestTheGuardKeepsOutWhomItKeepsOutOfLocks(t *testing.T) {
	masters := redlocktest.Start(t, 5)
	urls := masters.URLs()
	code, h := nodesOf(t, urls, "--restart-guard", "60")
	assert.Equal(t, cli.ExitOK, code, "they have been up for long")
	assert.Empty(t, h.Warnings)

	require.NoError(t, masters.Master(0).RestartEmpty())
	// The new server has received the identity record, and nothing else.
	const record = "redlock:server"
	mark, err := masters.Master(1).Miniredis().Get(record)
	require.NoError(t, err, "who looks with the guard leaves its record")
	require.NoError(t, masters.Master(1).FailOver())
	require.NoError(t, masters.Master(1).Miniredis().Set(record, mark))
	masters.Master(2).Demote()
	code, h = nodesOf(t, urls, "--restart-guard", "60")
	assert.Equal(t, cli.ExitNoQuorum, code)
	assert.Equal(t, []string{"quarantine", "quarantine", "replica", "ok", "ok"}, h.states())
	for _, n := range h.Nodes[:2] {
		left := time.Duration(n.Quarantine) * time.Microsecond
		assert.Greater(t, left, 10*time.Second)
		assert.LessOrEqual(t, left, 62*time.Second)
	}
	require.Equal(t, []string{"replica", "quarantine", "quarantine"}, h.codes())
	assert.Contains(t, h.Warnings[1].Text, "It was restarted")
	assert.Contains(t, h.Warnings[2].Text, "Another server took its place")

	code, h = nodesOf(t, urls)
	assert.Equal(t, cli.ExitOK, code, "without the guard everybody's vote counts but a replica's")
	assert.Equal(t, []string{"ok", "ok", "replica", "ok", "ok"}, h.states())
}

func TestOneServerByTwoNames(t *testing.T) {
	masters := redlocktest.Start(t, 2)
	urls := append(masters.URLs(), strings.Replace(masters.URLs()[0], "127.0.0.1", "localhost", 1))
	code, h := nodesOf(t, urls)
	assert.Equal(t, cli.ExitNoQuorum, code, "clients refuse to lock")
	assert.Equal(t, []string{"ok", "ok", "duplicate"}, h.states())
	assert.Equal(t, []string{"duplicate"}, h.codes())
	assert.Equal(t, 2, h.Voting)
}

func TestAServersWordsDoNotDriveTheTerminal(t *testing.T) {
	masters := redlocktest.Start(t, 1)
	masters.Master(0).Miniredis().SetError("ERR \x1b[2J" + strings.Repeat("long ", 200))
	code, h := nodesOf(t, masters.URLs())
	assert.Equal(t, cli.ExitNoQuorum, code)
	assert.Equal(t, []string{"failing"}, h.states())
	assert.NotContains(t, h.Warnings[0].Text, "\x1b")
	assert.Less(t, len(h.Warnings[0].Text), 400)
}

func TestNodesUsageErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no masters":       {nil, "no masters: give --nodes"},
		"an argument":      {[]string{"redis://:s3cret@h"}, "no arguments"},
		"a bad URL":        {[]string{"--nodes", "redis://h,http://:s3cret@h"}, "--nodes: URL 2 "},
		"one server twice": {[]string{"--nodes", "redis://:s3cret@h,redis://h/1"}, "twice"},
		"no time":          {[]string{"--nodes", "redis://h", "--timeout", "0"}, "--timeout 0s"},
		"a negative guard": {[]string{"--nodes", "redis://h", "--restart-guard=-1"}, "--restart-guard -1s"},
		"a small guard":    {[]string{"--nodes", "redis://h", "--restart-guard", "1ms"}, "--restart-guard 1ms is below the shortest ttl"},
		"a negative ttl":   {[]string{"--nodes", "redis://h", "--restart-guard", "1s", "--ttl=-1"}, "--ttl -1s"},
		"no guard":         {[]string{"--nodes", "redis://h", "--restart-guard", "soon"}, "--restart-guard"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(masterlist.NodesVariable, "")
			t.Setenv("HOME", t.TempDir())
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			code, stdout, stderr := clitest.Run(t, t.Context(), clitest.Program(Command()), append([]string{"nodes"}, tc.args...)...)
			clitest.AssertUsage(t, tc.want, code, stdout, stderr)
		})
	}
}

func TestNodesHelp(t *testing.T) {
	code, stdout, stderr := clitest.Run(t, t.Context(), clitest.Program(Command()), "nodes", "--help")
	assert.Equal(t, cli.ExitOK, code)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, "The exit status is 0")
	assert.Contains(t, stdout, "69")
	clitest.AssertFits(t, stdout)
}

func TestInterruptedNodesFails(t *testing.T) {
	masters := redlocktest.Start(t, 1)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted"))
	var out, errs bytes.Buffer
	assert.Equal(t, cli.ExitFailed, cli.Run(ctx, clitest.Program(Command()), []string{"nodes", "--nodes", masters.URLs()[0]}, &out, &errs))
	assert.Empty(t, out.String())
	clitest.AssertOneLine(t, errs.String())
	assert.Contains(t, errs.String(), "interrupted")
}

func TestHealthThatCannotBeWritten(t *testing.T) {
	masters := redlocktest.Start(t, 1)
	for _, format := range []string{"--json", "--json=false"} {
		var errs bytes.Buffer
		assert.Equal(t, cli.ExitFailed, cli.Run(t.Context(), clitest.Program(Command()), []string{"nodes", format, "--nodes", masters.URLs()[0]}, clitest.FullDisk{}, &errs))
		assert.Contains(t, errs.String(), "no space left")
	}
}
