package sim

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
	"github.com/quorumlock/redlock/internal/lab/exact"
	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scenario"
	"github.com/quorumlock/redlock/internal/lab/scene"
)

func TestSimPlaysAScenario(t *testing.T) {
	args := []string{"sim", "--exact", "--scenario", "nodes=3&clients=2&do=100-acquire-c1,600-kill-m3&until=1000"}
	code, out, errs := clitest.Run(t, t.Context(), clitest.Program(Command()), args...)
	require.Equal(t, cli.ExitOK, code, errs)
	assert.Contains(t, out, "a scenario: 3 masters, 2 clients, ttl 5s")
	assert.Contains(t, out, "valid until")
	assert.Contains(t, out, "FAULT                 down")
	assert.Regexp(t, "no violation: 2 actions, [0-9]+ events until 1s\nfingerprint [0-9a-f]{16}\n$", out)

	code, _, errs = clitest.Run(t, t.Context(), clitest.Program(Command()), append(args, "-q", "--fingerprint", "0123456789abcdef")...)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, errs, "the scenario makes another history")
}

func TestSimRefusesWhatIsNoScenario(t *testing.T) {
	for want, args := range map[string][]string{
		`--scenario: nodes is "12", want a number from 1 to 9`:    {"--exact", "--scenario", "nodes=12"},
		"--scenario needs --exact":                                {"--scenario", ""},
		"--scenario does not go with --nodes":                     {"--exact", "--scenario", "", "--nodes", "3"},
		`--scenario: action "kill-m1": want it to begin with its`: {"--exact", "--scenario", "do=kill-m1"},
		"--scenario: sim is no field of a scenario":               {"--exact", "--scenario", "sim=3"},
	} {
		code, _, errs := clitest.Run(t, t.Context(), clitest.Program(Command()), append([]string{"sim"}, args...)...)
		assert.Equal(t, cli.ExitUsage, code, want)
		assert.Contains(t, errs, want)
	}
}

// A broken promise fails, and what Redlock does not promise is said and does not.
func TestSimJudgesAScenario(t *testing.T) {
	s, err := scenario.Parse("until=1000")
	require.NoError(t, err)
	violation := exact.Violation{Violation: scene.Violation{Rule: history.Exclusion, Text: "two holders"}, At: time.Second}
	run, broken := acted(s, exact.Played{Violations: []exact.Violation{violation}})
	assert.True(t, broken)
	assert.Equal(t, "1 violation", run.Verdict)
	assert.Equal(t, []history.Violation{{At: time.Second, Rule: history.Exclusion, Text: "two holders"}}, run.Violations)

	violation.Excused = "A master forgot."
	run, broken = acted(s, exact.Played{Violations: []exact.Violation{violation}})
	assert.False(t, broken)
	assert.Equal(t, "no violation of what Redlock promises, and 1 of what it does not", run.Verdict)
	assert.Equal(t, "two holders (not promised: A master forgot.)", run.Violations[0].Text)
}

// playerFunc is a function that plays scenarios.
type playerFunc func(scenario.Scenario) (exact.Played, error)

func (f playerFunc) Play(_ context.Context, s scenario.Scenario) (exact.Played, error) { return f(s) }

func TestSimSaysWhyAScenarioWasNotPlayed(t *testing.T) {
	why := errors.New("no source")
	cmd := Command()
	require.NoError(t, cmd.ParseFlags([]string{"--exact", "--scenario", "nodes=3"}))
	f := &flags{exact: true, scenario: "nodes=3", player: playerFunc(func(s scenario.Scenario) (exact.Played, error) {
		assert.Equal(t, 3, s.Nodes)
		return exact.Played{}, why
	})}
	assert.ErrorIs(t, f.play(cmd), why)
}
