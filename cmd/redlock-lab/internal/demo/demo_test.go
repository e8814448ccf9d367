package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// wireStep is a line of --json, as another program would declare it.
type wireStep struct {
	Step    int
	Title   string
	OK      bool
	Problem string
	Writes  []struct {
		Token int64
		Error string
	}
	Rounds []struct {
		Client, Op, Key, Result, Error string
		Elapsed                        int64 `json:"elapsed_us"`
		TTL                            int64 `json:"ttl_us"`
		Drift                          int64 `json:"drift_us"`
		Validity                       int64 `json:"validity_us"`
		Granted, Needed, Cleared       int
		Nodes                          []struct {
			Addr, Vote, Said string
			Latency          int64 `json:"latency_us"`
		}
	}
}

func parseSteps(t *testing.T, stdout string) []wireStep {
	t.Helper()
	var steps []wireStep
	for line := range strings.Lines(stdout) {
		var s wireStep
		require.NoError(t, json.Unmarshal([]byte(line), &s), line)
		steps = append(steps, s)
	}
	return steps
}

func TestDemoOnMastersInMemory(t *testing.T) {
	code, stdout, stderr := clitest.Run(t, t.Context(), clitest.Program(Command()), "demo")
	require.Equal(t, cli.ExitOK, code, stderr)
	assert.Empty(t, stderr)
	for i := range 7 {
		assert.Contains(t, stdout, fmt.Sprintf("\n%d. ", i+1))
	}
	assert.Contains(t, stdout, "Acquired, 3 of 5 granted")
	assert.Regexp(t, `no quorum \([0-2] of 5\): elapsed`, stdout)
	assert.Contains(t, stdout, "All 7 steps went as they should.")
	assert.Contains(t, stdout, `A writes "paid by A" with its token: refused`)
	assert.Contains(t, stdout, "quarantined for")
	assert.NotContains(t, stdout, "\x1b", "a buffer is no terminal")
	clitest.AssertFits(t, stdout)
}

func TestDemoForMachines(t *testing.T) {
	code, stdout, stderr := clitest.Run(t, t.Context(), clitest.Program(Command()), "demo", "--json", "--ttl", "20s")
	require.Equal(t, cli.ExitOK, code, stderr)
	assert.Empty(t, stderr)
	steps := parseSteps(t, stdout)
	require.Len(t, steps, 7)

	for i, want := range []struct {
		results     string
		least, most int // grants in the first round
	}{
		{"acquire granted", 5, 5},
		{"acquire held, release granted", 0, 0},
		{"acquire granted, extend granted, release granted", 3, 3},
		// The third failure decides. A survivor that was not asked by then is never asked.
		{"acquire no quorum", 0, 2},
		{"acquire granted, release granted", 3, 5},
	} {
		s := steps[i]
		assert.Equal(t, i+1, s.Step)
		assert.True(t, s.OK)
		assert.Empty(t, s.Problem)
		assert.NotEmpty(t, s.Title)
		var results []string
		for _, r := range s.Rounds {
			results = append(results, r.Op+" "+r.Result)
		}
		assert.Equal(t, want.results, strings.Join(results, ", "))

		first := s.Rounds[0]
		assert.Equal(t, 3, first.Needed)
		assert.Len(t, first.Nodes, 5)
		assert.EqualValues(t, 20_000_000, first.TTL)
		assert.EqualValues(t, 202_000, first.Drift, "1 %% and 2 ms")
		assert.Positive(t, first.Elapsed)
		if first.Result == "granted" {
			// Each term was cut to whole microseconds, so the sum may be off by one.
			assert.InDelta(t, first.TTL-first.Drift-first.Elapsed, first.Validity, 1)
			assert.Empty(t, first.Error)
		} else {
			assert.Zero(t, first.Validity)
			assert.Contains(t, first.Error, "redlock: acquire ")
		}
		if first.Result == "no quorum" {
			assert.Contains(t, first.Error, fmt.Sprintf("no quorum: %d of 5 nodes granted", first.Granted), "as the votes say")
		}
		assert.GreaterOrEqual(t, first.Granted, want.least)
		assert.LessOrEqual(t, first.Granted, want.most)
		for _, n := range first.Nodes {
			assert.NotEmpty(t, n.Addr)
			assert.NotEmpty(t, n.Said)
			assert.Contains(t, []string{"granted", "refused", "failed", "not asked"}, n.Vote)
			assert.GreaterOrEqual(t, n.Latency, int64(0))
		}
		if last := s.Rounds[len(s.Rounds)-1]; last.Op == "release" {
			assert.GreaterOrEqual(t, last.Cleared, 3)
		}
	}

	// The token of the holder that slept is refused.
	s := steps[5]
	require.True(t, s.OK, s.Problem)
	require.Len(t, s.Writes, 2)
	assert.Greater(t, s.Writes[0].Token, s.Writes[1].Token)
	assert.Empty(t, s.Writes[0].Error)
	assert.Contains(t, s.Writes[1].Error, "stale token")

	// Two holders without the guard, one with it.
	s = steps[6]
	require.True(t, s.OK, s.Problem)
	var results []string
	for _, r := range s.Rounds {
		results = append(results, r.Client+" "+r.Result)
	}
	assert.Equal(t, []string{"A granted", "B without the guard granted", "B with the guard held"}, results)
}

func TestDemoOnGivenMasters(t *testing.T) {
	masters := redlocktest.Start(t, 3)
	for _, m := range masters.All() {
		m.SetPassword("s3cret")
	}
	ignore := goleak.IgnoreCurrent()
	urls := masters.URLs()
	args := []string{"demo", "--nodes", urls[0] + ", " + urls[1], "--nodes", urls[2]}

	var out, errs bytes.Buffer
	require.Equal(t, cli.ExitOK, cli.Run(t.Context(), clitest.Program(Command()), args, &out, &errs), errs.String())
	assert.Empty(t, errs.String())
	assert.Contains(t, out.String(), "All 4 steps went as they should.")
	assert.NotContains(t, out.String(), "s3cret")
	clitest.AssertFits(t, out.String())

	// A dead minority does not make the demo fail.
	masters.Kill(1)
	out.Reset()
	require.Equal(t, cli.ExitOK, cli.Run(t.Context(), clitest.Program(Command()), append(args, "--json"), &out, &errs), errs.String())
	assert.Empty(t, errs.String())
	assert.NotContains(t, out.String(), "s3cret")
	steps := parseSteps(t, out.String())
	require.Len(t, steps, 4)
	keys := map[string]bool{}
	for i, want := range []string{"acquire granted", "acquire held", "extend granted", "release granted"} {
		require.Len(t, steps[i].Rounds, 1)
		r := steps[i].Rounds[0]
		assert.Equal(t, want, r.Op+" "+r.Result)
		keys[r.Key] = true
		if len(r.Nodes) == 3 {
			// The attempt may be decided by the two live masters before the lane tries this one.
			assert.Contains(t, []string{"failed", "not asked"}, r.Nodes[1].Vote)
		}
	}
	assert.Len(t, keys, 1)

	for _, m := range masters.All() {
		assert.Empty(t, m.Miniredis().Keys(), "the demo leaves nothing")
	}
	goleak.VerifyNone(t, ignore)
}

func TestTwoDemosHaveKeysOfTheirOwn(t *testing.T) {
	masters := redlocktest.Start(t, 1)
	seen := map[string]bool{}
	for range 2 {
		var out, errs bytes.Buffer
		require.Equal(t, cli.ExitOK, cli.Run(t.Context(), clitest.Program(Command()), []string{"demo", "--json", "--nodes", masters.URLs()[0]}, &out, &errs), errs.String())
		seen[parseSteps(t, out.String())[0].Rounds[0].Key] = true
	}
	assert.Len(t, seen, 2)
}

func TestDemoFailsWithoutAMajority(t *testing.T) {
	masters := redlocktest.Start(t, 3)
	dead := redlocktest.Start(t, 3)
	dead.Kill(0, 1, 2)
	withPassword := func(addr string) string {
		u := url.URL{Scheme: "redis", Host: addr, User: url.UserPassword("", "wr0ng")}
		return u.String()
	}
	for _, m := range masters.All() {
		m.SetPassword("s3cret")
	}
	for name, tc := range map[string]struct {
		masters *redlocktest.Masters
		want    string
	}{
		"unreachable":    {dead, ": connection refused"},
		"wrong password": {masters, "WRONGPASS"},
	} {
		for _, format := range []string{"--json=false", "--json"} {
			t.Run(name+" "+format, func(t *testing.T) {
				args := []string{"demo", format}
				for _, m := range tc.masters.All() {
					args = append(args, "--nodes", withPassword(m.Addr()))
				}
				var out, errs bytes.Buffer
				assert.Equal(t, cli.ExitFailed, cli.Run(t.Context(), clitest.Program(Command()), args, &out, &errs))
				clitest.AssertOneLine(t, errs.String())
				assert.Contains(t, errs.String(), "failed at step 1")
				assert.Contains(t, errs.String(), "no quorum")
				assert.Contains(t, errs.String(), tc.want)
				assert.NotContains(t, out.String()+errs.String(), "wr0ng")
				if format == "--json" {
					steps := parseSteps(t, out.String())
					require.Len(t, steps, 1)
					assert.False(t, steps[0].OK)
					assert.Contains(t, steps[0].Problem, "no quorum")
				} else {
					clitest.AssertFits(t, out.String())
				}
			})
		}
	}
}

func TestInterruptedDemoFails(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted"))
	code, _, stderr := clitest.Run(t, ctx, clitest.Program(Command()), "demo")
	assert.Equal(t, cli.ExitFailed, code)
	clitest.AssertOneLine(t, stderr)
	assert.Contains(t, stderr, "interrupted")
}

func TestPerformStopsAtTheFirstProblem(t *testing.T) {
	var out bytes.Buffer
	played := 0
	err := perform(t.Context(), "", []scene{
		{"one", func(context.Context, *step) error { played++; return nil }},
		{"two", func(context.Context, *step) error { played++; return errors.New("redlock: a\nb") }},
		{"three", func(context.Context, *step) error { played++; return nil }},
	}, jsonLines{&out})
	require.EqualError(t, err, "demo failed at step 2 (two): a; b")
	assert.Equal(t, 2, played)
	steps := parseSteps(t, out.String())
	require.Len(t, steps, 2)
	assert.True(t, steps[0].OK)
	assert.False(t, steps[1].OK)
	assert.Equal(t, "a; b", steps[1].Problem)
}

// A demo in which nothing can go wrong would prove nothing.
func TestDemoNoticesWhatIsWrong(t *testing.T) {
	masters := redlocktest.Start(t, 5)
	urls, err := shut(masters)
	require.NoError(t, err)
	a, err := openClient("A", urls, redlock.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	o := &outage{masters: masters, urls: urls, a: a, ttl: 10 * time.Second}

	masters.Kill(0)
	require.EqualError(t, o.acquire(t.Context(), &step{}), "acquire: 4 masters granted it, not 5")
	require.NoError(t, o.held.Release(t.Context()))
	require.NoError(t, masters.Restart(0))

	require.ErrorContains(t, o.contend(t.Context(), &step{}), `granted, but it should have been "held by another client"`)

	// The key is on the masters, so the fourth step cannot find them empty.
	for _, m := range masters.All() {
		require.NoError(t, m.Miniredis().Set(outageKey, "somebody's"))
	}
	err = o.take(t.Context(), &step{}, 5, 5)
	require.ErrorContains(t, err, "held by another client")
	masters.Kill(3, 4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, o.nothingLeft(ctx, 0, 1), "a key was left on "+masters.Master(1).Addr())
}
