package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/sim"
)

func TestSimShowsOneSeed(t *testing.T) {
	page := filepath.Join(t.TempDir(), "run.html")
	code, out, errs := clitest.Run(t, t.Context(), clitest.Program(Command()), "sim", "--seed", "3", "--nodes", "3", "--clients", "2", "--for", "500ms", "--faults", "crash,delay", "--html", page)
	require.Equal(t, cli.ExitOK, code, errs)
	assert.Contains(t, out, "no violation")
	assert.Regexp(t, `fingerprint [0-9a-f]{16}`, out)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(html), "<svg")
	assert.Contains(t, string(html), "redlock-lab sim --seed 3 --nodes 3 --clients 2 --for 500ms --faults crash,delay")
	assert.NotRegexp(t, `>\d\d+(\.\d+)? s<`, string(html), "the picture ends with the work, not with the minute after it")
}

func TestSimRunsManySeeds(t *testing.T) {
	code, out, errs := clitest.Run(t, t.Context(), clitest.Program(Command()), "sim", "--seeds", "1-3", "--clients", "2", "--for", "300ms", "--faults", "none")
	require.Equal(t, cli.ExitOK, code, errs)
	assert.Regexp(t, `^seeds 1-3: 0 with violations; 3 runs, \d+ acquisitions, \d+ locks, 0 faults, `, out)
}

// The seed stays the same with and without tokens and the guard, and the command shows which.
func TestSimSwitchesTokensAndTheGuard(t *testing.T) {
	code, out, errs := clitest.Run(t, t.Context(), clitest.Program(Command()), "sim", "--seed", "3", "--nodes", "3", "--clients", "2", "--for", "300ms", "--faults", "none", "--fencing", "--guard=false")
	require.Equal(t, cli.ExitOK, code, errs)
	assert.Contains(t, out, "redlock-lab sim --seed 3 --nodes 3 --clients 2 --for 300ms --faults none --fencing --guard=false\n")
	assert.Regexp(t, `granted .*, token \d{15}`, out)
	code, out, errs = clitest.Run(t, t.Context(), clitest.Program(Command()), "sim", "--seed", "3", "--nodes", "3", "--clients", "2", "--for", "300ms", "--faults", "none", "--fencing=false", "--guard")
	require.Equal(t, cli.ExitOK, code, errs)
	assert.Contains(t, out, "--fencing=false --guard\n")
	assert.NotContains(t, out, "token")
}

// Violations of what Redlock does not promise are shown, and are no failure.
func TestSimCountsWhatIsNotPromised(t *testing.T) {
	code, out, errs := clitest.Run(t, t.Context(), clitest.Program(Command()), "sim", "--seeds", "6-8", "--nodes", "3", "--clients", "3", "--for", "1s", "--faults", "slow-client")
	require.Equal(t, cli.ExitOK, code, errs)
	assert.Regexp(t, `beyond what Redlock promises: slow-client in \d+ of 3 runs, first with seed \d+`, out)
}

func TestSimRefusesWhatItCannotRun(t *testing.T) {
	for says, args := range map[string][]string{
		"no fault is called":     {"--faults", "fire"},
		"nodes is 100":           {"--nodes", "100"},
		"for is -1s":             {"--for", "-1s"},
		"want a range":           {"--seeds", "9-1"},
		`"x-y"`:                  {"--seeds", "x-y"},
		"--seeds goes with none": {"--seeds", "1-2", "--seed", "3"},
		"go with --seeds":        {"--first"},
		"without has 99":         {"--without", "99", "--faults", "none"},
		"no arguments":           {"42"},
		"hexadecimal digits":     {"--fingerprint", "0123456789ABCDEF"},
	} {
		code, out, errs := clitest.Run(t, t.Context(), clitest.Program(Command()), append([]string{"sim"}, args...)...)
		assert.Equal(t, cli.ExitUsage, code, "%v", args)
		assert.Empty(t, out)
		assert.Contains(t, errs, says)
	}
}

// A fingerprint identifies a history, and finds it again.
func TestSimFindsAHistoryAgain(t *testing.T) {
	small := []string{"sim", "-q", "--seed", "5", "--clients", "1", "--nodes", "1", "--for", "200ms", "--faults", "none"}
	code, out, _ := clitest.Run(t, t.Context(), clitest.Program(Command()), small...)
	require.Equal(t, cli.ExitOK, code)
	fingerprint := regexp.MustCompile(`fingerprint (\w+)`).FindStringSubmatch(out)[1]
	code, again, _ := clitest.Run(t, t.Context(), clitest.Program(Command()), append(small, "--fingerprint", fingerprint)...)
	require.Equal(t, cli.ExitOK, code)
	assert.Contains(t, again, fingerprint)
	code, _, errs := clitest.Run(t, t.Context(), clitest.Program(Command()), append(small, "--fingerprint", "0123456789abcdef")...)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, errs, "other histories")
}

// An exact run makes one history of a seed, which has a fingerprint of its own.
func TestSimExactFindsItsHistoryAtOnce(t *testing.T) {
	small := []string{"sim", "--exact", "--seed", "5", "--clients", "2", "--nodes", "3", "--for", "200ms", "--faults", "none"}
	code, out, errs := clitest.Run(t, t.Context(), clitest.Program(Command()), small...)
	require.Equal(t, cli.ExitOK, code, errs)
	assert.Contains(t, errs, "compiling the simulation")
	fingerprint := regexp.MustCompile(`fingerprint (\w+)`).FindStringSubmatch(out)[1]
	assert.Contains(t, out, "redlock-lab sim --exact --seed 5 --nodes 3 --clients 2 --for 200ms --faults none\n")
	code, again, _ := clitest.Run(t, t.Context(), clitest.Program(Command()), append(small, "--fingerprint", fingerprint)...)
	require.Equal(t, cli.ExitOK, code)
	assert.Equal(t, out, again)
	code, _, errs = clitest.Run(t, t.Context(), clitest.Program(Command()), append(small, "-q", "--fingerprint", "0123456789abcdef")...)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, errs, "the seed makes another history")
	assert.NotContains(t, errs, "compiling")
}

// fakeLab is a lab that makes up its histories.
type fakeLab func(sim.Config) (sim.Result, error)

func (l fakeLab) Run(_ context.Context, c sim.Config) (sim.Result, error) { return l(c) }

// A seed that fails is looked for among the exact histories, and the smaller command is of one of them.
func TestShrinkPrefersExactHistories(t *testing.T) {
	made := func(text string, c sim.Config, rules ...string) (r sim.Result) {
		r.Plan, _ = sim.Draw(c)
		r.Events = []history.Event{{Text: text}}
		for _, rule := range rules {
			r.Violations = append(r.Violations, history.Violation{Rule: rule})
		}
		return r
	}
	c := sim.Config{Seed: 7, Nodes: 3, Clients: 2, For: time.Second, Faults: []sim.Kind{sim.Crash}}
	native := fakeLab(func(c sim.Config) (sim.Result, error) { return made("native", c, "owner"), nil })
	for name, test := range map[string]struct {
		exactly fakeLab
		want    string
	}{
		"it fails there too": {func(c sim.Config) (sim.Result, error) { return made("exact", c, "owner"), nil }, `^seed 7: 1 violations, the first: .*owner.*
  redlock-lab sim --seed 7 .* --fingerprint ` + made("native", c).Fingerprint() + `
  exact: redlock-lab sim --exact --seed 7 .* --fingerprint ` + made("exact", c).Fingerprint() + `
  watch it: redlock-lab serve, then http://127.0.0.1:8317/#sim=7&nodes=3&clients=2&for=1s&faults=crash
  smaller: redlock-lab sim --exact --seed 7 .*
  watch it: redlock-lab serve, then http://127.0.0.1:8317/#sim=7&.*\n$`},
		"it breaks another rule there": {func(c sim.Config) (sim.Result, error) { return made("exact", c, "fence"), nil }, `^seed 7: .*
  redlock-lab sim --seed 7 .*
  an exact run of the seed does not break this rule first
  smaller: redlock-lab sim --seed 7 .*\n$`},
		"there are no exact runs": {func(c sim.Config) (sim.Result, error) { return sim.Result{}, errors.New("no source") }, `^seed 7: .*
  redlock-lab sim --seed 7 .*
no exact run: no source
  smaller: redlock-lab sim --seed 7 .*\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			cmd := &cobra.Command{}
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			f := &flags{shrink: true, native: native, exactly: test.exactly}
			r, err := native(c)
			require.NoError(t, err)
			f.explain(cmd, r)
			assert.Regexp(t, test.want, out.String())
		})
	}
}

// An exact failure comes with the link to it, also without --shrink; a native one, which a page might not
// show, does not.
func TestExactFailureHasALink(t *testing.T) {
	plan, err := sim.Draw(sim.Config{Seed: 7, Nodes: 3, Fencing: sim.On})
	require.NoError(t, err)
	r := sim.Result{Plan: plan, Violations: []history.Violation{{Rule: "owner"}}}
	for _, exactly := range []bool{true, false} {
		var out strings.Builder
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		(&flags{exact: exactly}).explain(cmd, r)
		assert.Equal(t, exactly, strings.Contains(out.String(), "\n  watch it: redlock-lab serve, then http://127.0.0.1:8317/#sim=7&nodes=3&fencing=on\n"), out.String())
	}
}

// While another history is made, the command says so, and how often it tries.
func TestSimSaysThatItTriesAgain(t *testing.T) {
	runs := 0
	f := &flags{fingerprint: "0123456789abcdef", native: fakeLab(func(c sim.Config) (r sim.Result, err error) {
		runs++
		r.Plan, err = sim.Draw(c)
		return r, err
	})}
	var said strings.Builder
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetErr(&said)
	assert.ErrorContains(t, f.one(cmd), "other histories 20 times")
	assert.Equal(t, 20, runs)
	assert.Equal(t, 19, strings.Count(said.String(), "made another history"))
	assert.Contains(t, said.String(), "run 1 of 20 made another history")

	interrupted, interrupt := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	interrupt(why)
	cmd.SetContext(interrupted)
	runs = 0
	assert.ErrorIs(t, f.one(cmd), why)
	assert.Equal(t, 1, runs)
}
