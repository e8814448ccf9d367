package release

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/redlock"
)

type wireRelease struct {
	Before, After *struct{ Verdict string }
	Deleted       []string
}

// stdin makes commands of the test read from f.
func stdin(t *testing.T, f *os.File) {
	before := os.Stdin
	os.Stdin = f
	t.Cleanup(func() { os.Stdin = before })
}

func TestReleaseBreaksALock(t *testing.T) {
	s := clitest.NewShell(t, Command, 5)
	s.Lays("orders", "AAAB-")
	code, stdout, stderr := s.Types("release", "--force", "--yes", "orders")
	assert.Equal(t, cli.ExitOK, code, stderr)
	assert.Empty(t, stderr)
	assert.Empty(t, s.Has("orders"))
	assert.Contains(t, stdout, "Held: "+clitest.Named("A")+" has it on 3 of 5 masters")
	assert.Contains(t, stdout, "\nDeleted on 4 of 5 masters: "+s.Masters.Master(0).Addr()+", ")
	assert.Contains(t, stdout, "\nNow free: ")
	assert.Contains(t, stdout, "\nCheck now:\n   - That the holder is dead")
	assert.Contains(t, stdout, "logs as "+clitest.Named("A")+",\n     "+clitest.Named("B")+".")
	assert.NotContains(t, stdout, "5ec4e70")
}

func TestReleaseForMachines(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	s.Lays("orders", "AA-")
	code, stdout, stderr := s.Types("release", "--force", "--yes", "--json", "orders")
	assert.Equal(t, cli.ExitOK, code)
	assert.Empty(t, stderr)
	var got wireRelease
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, "held", got.Before.Verdict)
	assert.Equal(t, []string{s.Masters.Master(0).Addr(), s.Masters.Master(1).Addr()}, got.Deleted)
	assert.Equal(t, "free", got.After.Verdict)

	code, stdout, _ = s.Types("release", "--force", "--yes", "--json", "orders")
	assert.Equal(t, cli.ExitOK, code)
	got = wireRelease{}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, "free", got.Before.Verdict)
	assert.NotNil(t, got.Deleted)
	assert.Empty(t, got.Deleted)
	assert.Nil(t, got.After)
}

func TestReleaseLeavesAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		values string
		dead   []int
		code   int
		says   string
	}{
		"what is no lock":        {"TT-", nil, cli.ExitFailed, "the key is not a lock on 2 of 3 masters: it is a list; nothing was deleted"},
		"without a quorum":       {"AAA", []int{0, 2}, cli.ExitNoQuorum, "1 of 3 masters could tell, 2 are needed; nothing was deleted"},
		"what may not be locked": {"-A-", []int{0, 2}, cli.ExitNoQuorum, "nothing was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewShell(t, Command, 3)
			s.Lays("orders", tc.values)
			before := s.Has("orders")
			s.Masters.Kill(tc.dead...)
			for _, format := range []string{"--json=false", "--json"} {
				code, stdout, stderr := s.Types("release", "--force", "--yes", "orders", format)
				assert.Equal(t, tc.code, code)
				clitest.AssertOneLine(t, stderr)
				assert.Contains(t, stderr, tc.says)
				assert.NotContains(t, stdout, "nothing to break")
				assert.Equal(t, before, s.Has("orders"))
			}
		})
	}
}

// A minority that is down is reported, and is no failure.
func TestReleaseWithADeadMinority(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	s.Lays("orders", "AAA")
	s.Masters.Kill(1)
	code, stdout, stderr := s.Types("release", "--force", "--yes", "orders")
	assert.Equal(t, cli.ExitOK, code, stderr)
	assert.Contains(t, stdout, "Deleted on 2 of 3 masters")
	assert.Contains(t, stdout, "1 of 3 masters cannot tell: what they still have goes when it expires.")
	assert.Equal(t, []int{1}, s.Has("orders"))
}

func TestReleaseWhereNobodyCanAnswer(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	s.Lays("orders", "AAA")
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	_, err = write.WriteString("yes\n")
	require.NoError(t, err)
	stdin(t, read)
	code, stdout, stderr := s.Types("release", "--force", "orders")
	clitest.AssertUsage(t, "stdin is no terminal, so nobody can be asked: give --yes", code, stdout, stderr)
	assert.Len(t, s.Has("orders"), 3)
}

// The next waiter gets the lock.
func TestReleaseWakesTheNext(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	dead, err := redlock.Open(s.Masters.URLs(), redlock.Config{NodeTimeout: masterlist.NodeTimeout})
	require.NoError(t, err)
	defer func() { require.NoError(t, dead.Close()) }()
	l, err := dead.TryAcquire(t.Context(), "orders", time.Hour)
	require.NoError(t, err)
	next, err := redlock.Open(s.Masters.URLs(), redlock.Config{NodeTimeout: masterlist.NodeTimeout})
	require.NoError(t, err)
	defer func() { require.NoError(t, next.Close()) }()
	got := make(chan error, 1)
	var won *redlock.Lock
	go func() {
		l, err := next.Acquire(t.Context(), "orders", time.Hour)
		won = l
		got <- err
	}()
	waiting := func(i *redlock.Inspection) bool {
		for n, m := range s.Masters.All() {
			if i.Nodes[n].Waiting != 1 || len(m.Miniredis().PubSubChannels("")) != 1 {
				return false
			}
		}
		return true
	}
	for {
		i, err := dead.Inspect(t.Context(), "orders")
		require.NoError(t, err)
		if waiting(i) { // it is queued on all masters, and listens
			break
		}
	}
	var out, errs bytes.Buffer
	assert.Equal(t, cli.ExitOK, cli.Run(t.Context(), clitest.Program(Command()), []string{"release", "--force", "--yes", "orders"}, &out, &errs), errs.String())
	assert.Contains(t, out.String(), "Held: "+l.Holder()+" has it")
	require.NoError(t, <-got)
	assert.NotEqual(t, l.Holder(), won.Holder())
	require.NoError(t, won.Release(t.Context()))
	assert.ErrorIs(t, l.Release(t.Context()), redlock.ErrNotHeld)
}

func TestReleaseUsage(t *testing.T) {
	t.Setenv(masterlist.NodesVariable, "redis://u:s3cret@127.0.0.1:1")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"release: no key": {[]string{"release", "--force"}, "KEY is missing"},
		"not by force":    {[]string{"release", "a"}, "holder is dead: it needs --force"},
		"json asks":       {[]string{"release", "a", "--force", "--json"}, "--json asks nobody: it needs --yes"},
		"reserved lock":   {[]string{"release", "redlock:fence:{a}", "--force", "--yes"}, "is reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := clitest.Run(t, t.Context(), clitest.Program(Command()), tc.args...)
			clitest.AssertUsage(t, tc.want, code, stdout, stderr)
		})
	}
}

func TestHelpOfRelease(t *testing.T) {
	code, stdout, _ := clitest.Run(t, t.Context(), clitest.Program(Command()), "release", "--help")
	assert.Equal(t, cli.ExitOK, code)
	assert.Contains(t, stdout, "Exit status:")
	assert.Contains(t, stdout, "\n  69  ")
	clitest.AssertFits(t, stdout)
}
