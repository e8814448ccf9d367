package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
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
