package status

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/redlock"
)

// WireStatus is the object of status --json, as another program would declare it.
type WireStatus struct {
	Key, Verdict, Holder string
	Quorum               int
	Nodes                []struct {
		Addr, State, Holder, Error, Foreign string
		TTL                                 *int64 `json:"ttl_ms"`
		Waiting                             *int
		Fence                               *int64
		Value                               *string
	}
}

func TestStatusTellsAVerdict(t *testing.T) {
	s := clitest.NewShell(t, Command, 5)
	for values, want := range map[string]struct {
		verdict, says string
	}{
		"-----": {"free", "Free: 5 of 5 masters do not have it, so nobody holds it.\n"},
		"A-A-A": {"held", "Held: " + clitest.Named("A") + " has it on 3 of 5 masters, for 1h0m unless it is renewed.\n"},
		"-A--B": {"free", "Free: 3 of 5 masters do not have it, so nobody holds it. What is left on others\ngoes when it expires.\n"},
		"AABB-": {"split", "Split: no majority has one lock"},
		"TTT--": {"foreign", "Foreign: the key is not a lock, and nobody can have a lock of this name"},
	} {
		s.Lays("orders", "-----")
		s.Lays("orders", values)
		exit := cli.ExitOK
		if want.verdict == "foreign" {
			exit = cli.ExitFailed
		}
		code, stdout, stderr := s.Types("status", "orders")
		assert.Equal(t, exit, code, values)
		assert.Equal(t, exit == cli.ExitOK, stderr == "", stderr)
		assert.Contains(t, stdout, "Lock \"orders\" on 5 masters, of which 3 are a majority:\n\n   node ")
		assert.Contains(t, stdout, want.says, values)
		assert.NotContains(t, stdout, "5ec4e70")
		assert.NotContains(t, stdout, "fence")
		rows := strings.Split(stdout, "\n")[3:]
		for i, v := range values {
			assert.Contains(t, rows[i], s.Masters.Master(i).Addr())
			switch v {
			case '-':
				assert.Regexp(t, `  free     ?-               -        0$`, rows[i])
			case 'T':
				assert.Contains(t, rows[i], " foreign  has a list under this key, which is not a lock")
			default:
				assert.Regexp(t, "  held    "+clitest.Named(string(v))+`     1h0m        0$`, rows[i])
			}
		}

		code, stdout, stderr = s.Types("status", "--json", "orders")
		assert.Equal(t, exit, code)
		assert.Equal(t, exit == cli.ExitOK, stderr == "", stderr)
		assert.NotContains(t, stdout, "5ec4e70")
		var got WireStatus
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		assert.Equal(t, "orders", got.Key)
		assert.Equal(t, want.verdict, got.Verdict, values)
		assert.Equal(t, 3, got.Quorum)
		assert.Equal(t, want.verdict == "held", got.Holder == clitest.Named("A"))
		require.Len(t, got.Nodes, 5)
		for i, v := range values {
			n := got.Nodes[i]
			assert.Equal(t, s.Masters.Master(i).Addr(), n.Addr)
			switch v {
			case '-':
				assert.Equal(t, "free", n.State)
				assert.Empty(t, n.Holder)
				assert.Nil(t, n.TTL)
			case 'T':
				assert.Equal(t, "foreign", n.State)
				assert.Equal(t, "it is a list", n.Foreign)
				assert.Nil(t, n.Waiting)
				continue
			default:
				assert.Equal(t, "held", n.State)
				assert.Equal(t, clitest.Named(string(v)), n.Holder)
				assert.InDelta(t, time.Hour.Milliseconds(), *n.TTL, 60_000)
			}
			assert.Empty(t, n.Error)
			assert.Zero(t, *n.Waiting)
			assert.Zero(t, *n.Fence)
		}
	}
}

func TestStatusWithoutAQuorum(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	s.Lays("orders", "AAA")
	s.Masters.Kill(2)
	code, stdout, stderr := s.Types("status", "orders")
	assert.Equal(t, cli.ExitOK, code, stderr)
	assert.Contains(t, stdout, "has it on 2 of 3 masters")
	assert.Contains(t, stdout, "refused")
	s.Masters.Kill(0)
	code, stdout, stderr = s.Types("status", "orders")
	assert.Equal(t, cli.ExitNoQuorum, code)
	clitest.AssertOneLine(t, stderr)
	assert.Equal(t, "redlock: status \"orders\": 1 of 3 masters could tell, 2 are needed\n", stderr)
	assert.Contains(t, stdout, "Unknown: 1 of 3 masters could tell, 2 are needed.\n")
	assert.Contains(t, stdout, "held    "+clitest.Named("A"))

	code, stdout, stderr = s.Types("status", "orders", "--json")
	assert.Equal(t, cli.ExitNoQuorum, code)
	clitest.AssertOneLine(t, stderr)
	var got WireStatus
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, "unknown", got.Verdict)
	assert.Empty(t, got.Holder)
	assert.Contains(t, got.Nodes[0].Error, "refused")

	s = clitest.NewShell(t, Command, 5) // four of them answer, and the verdict depends on the fifth
	s.Lays("orders", "AABB-")
	s.Masters.Kill(4)
	code, _, stderr = s.Types("status", "orders")
	assert.Equal(t, cli.ExitNoQuorum, code)
	assert.Contains(t, stderr, "4 of 5 masters could tell, and it depends on the others")
}

func TestStatusShowsValuesOnRequest(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	s.Lays("orders", "AB-")
	require.NoError(t, s.Masters.Master(2).Miniredis().Set("orders", "\x1b[31m\n"))
	code, stdout, _ := s.Types("status", "orders", "--show-value")
	assert.Equal(t, cli.ExitOK, code)
	assert.Contains(t, stdout, clitest.Named("A")+"  "+clitest.Value("A")+"\n")
	assert.Contains(t, stdout, clitest.Named("B")+"  "+clitest.Value("B")+"\n")
	assert.Contains(t, stdout, `"\x1b[31m\n"`)
	assert.Contains(t, stdout, "  never  ")
	code, stdout, _ = s.Types("status", "orders", "--show-value", "--json")
	assert.Equal(t, cli.ExitOK, code)
	var got WireStatus
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, clitest.Value("A"), *got.Nodes[0].Value)
	assert.Equal(t, "\x1b[31m\n", *got.Nodes[2].Value)
	assert.EqualValues(t, -1, *got.Nodes[2].TTL)

	s.Lays("orders", "CCC")
	_, stdout, _ = s.Types("status", "orders", "--show-value")
	assert.Equal(t, 1, strings.Count(stdout, clitest.Value("C")), "each value once")
}

// A value that the user may not see is shown as a question mark. The masters' own texts neither
// drive the terminal nor make a row too wide.
func TestTheTableFits(t *testing.T) {
	nodes := []redlock.NodeInspection{
		{Addr: "10.0.0.1:6379", Holder: "3fa91c2e", TTL: 26800 * time.Millisecond, Waiting: 12, Fence: 1795292598551062},
		{Addr: "[2001:db8:1234:5678:9abc:def0:1234:5678]:6379", Holder: "3fa91c2e", TTL: 1000 * time.Hour, Waiting: -1, Fence: -1},
		{Addr: "10.0.0.3:6379", Holder: "91ab0000", TTL: -time.Millisecond},
		{Addr: "10.0.0.4:6379", Err: fmt.Errorf("ERR \x1b[31m%s %s", strings.Repeat("long ", 20), strings.Repeat("x", 90))},
		{Addr: "10.0.0.5:6379"},
	}
	i := Inspection{&redlock.Inspection{Key: "orders", Need: 3, Nodes: nodes}}
	out := i.Show(true, false)
	clitest.AssertFits(t, clitest.Escapes.ReplaceAllString(out, ""))
	out = i.Show(false, false)
	clitest.AssertFits(t, out)
	assert.NotContains(t, out, "\x1b")
	assert.Contains(t, out, "\n   node                     state   holder    expires  waiting             fence\n")
	assert.Regexp(t, `10.0.0.1:6379 +held    3fa91c2e    26.8s       12  1795292598551062\n`, out)
	assert.Regexp(t, `\[2001:db8:1234:5678:9ab +held    3fa91c2e +41d[0-9h]* +\?                 \?\n`, out)
	assert.Contains(t, out, "\n   c:def0:1234:5678]:6379\n")
	assert.Contains(t, out, "Unknown: 4 of 5 masters could tell, and it depends on the others.\n")
	assert.Regexp(t, `10.0.0.3:6379 +held    91ab0000    never        0                 0\n`, out)
}

// The lock lasts until fewer than a majority have it.
func TestHeldUntil(t *testing.T) {
	at := func(ttls ...time.Duration) (nodes []redlock.NodeInspection) {
		for _, ttl := range ttls {
			nodes = append(nodes, redlock.NodeInspection{Holder: "3fa91c2e", TTL: ttl})
		}
		return nodes
	}
	for want, nodes := range map[string][]redlock.NodeInspection{
		"for 2.0s unless": at(time.Second, 2*time.Second, 3*time.Second),
		"for 5.0s unless": at(9*time.Second, 5*time.Second),
		"for 7.0s unless": at(-1, 7*time.Second, 6*time.Second),
		"does not expire": at(-1, -1, time.Second),
	} {
		assert.Contains(t, Inspection{&redlock.Inspection{Need: 2, Nodes: nodes}}.until("3fa91c2e"), want)
	}
}

func TestStatusUsage(t *testing.T) {
	t.Setenv(masterlist.NodesVariable, "redis://u:s3cret@127.0.0.1:1")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no key":       {[]string{"status"}, "KEY is missing"},
		"two keys":     {[]string{"status", "a", "redis://:s3cret@h"}, "one KEY is wanted, not 2"},
		"empty key":    {[]string{"status", ""}, "KEY is empty"},
		"reserved key": {[]string{"status", "redlock:server"}, "is reserved"},
		"bad nodes":    {[]string{"status", "a", "--nodes", "http://:s3cret@h"}, "--nodes: URL 1 "},
		"flag":         {[]string{"status", "a", "--force"}, "--force"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := clitest.Run(t, t.Context(), clitest.Program(Command()), tc.args...)
			clitest.AssertUsage(t, tc.want, code, stdout, stderr)
		})
	}
}

func TestHelpOfStatus(t *testing.T) {
	code, stdout, _ := clitest.Run(t, t.Context(), clitest.Program(Command()), "status", "--help")
	assert.Equal(t, cli.ExitOK, code)
	assert.Contains(t, stdout, "Exit status:")
	assert.Contains(t, stdout, "\n  69  ")
	clitest.AssertFits(t, stdout)
}
