package main

import (
	"fmt"
	"os"
	"os/signal"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
	"github.com/quorumlock/redlock/internal/leash"
)

// TestMain lets this binary act as any program that scripts run, depending on the name by which it
// is called.
func TestMain(m *testing.M) { testscript.Main(leakFree{m}, programs) }

// programs has the programs that scripts run, by name.
var programs = map[string]func(){"redlock": main}

// leakFree runs tests, and fails if they leave a goroutine behind.
type leakFree struct{ testscript.TestingM }

func (m leakFree) Run() int {
	// Catch all these signals: under nohup(1) the programs would ignore SIGHUP.
	signal.Notify(make(chan os.Signal, 1), append(leash.Endings(), leash.Messages()...)...)
	code := m.TestingM.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return cli.ExitFailed
	}
	return code
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := clitest.Run(t, t.Context(), newRoot(), "version")
	assert.Equal(t, cli.ExitOK, code)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, "github.com/quorumlock/redlock")
	assert.Contains(t, stdout, "go1.")
}

// A release has its version stamped in, wherever it was built.
func TestVersionIsStamped(t *testing.T) {
	defer func(before string) { version = before }(version)
	version = "v1.2.3"
	_, stdout, _ := clitest.Run(t, t.Context(), newRoot(), "--version")
	assert.Equal(t, "redlock version v1.2.3\n", stdout)
	_, stdout, _ = clitest.Run(t, t.Context(), newRoot(), "version")
	assert.Regexp(t, `\Aredlock +v1\.2\.3\n`, stdout)
}

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	clitest.AssertFailsOnAFullDisk(t, newRoot(), "version")
}

func TestHelpSaysWhatItDoes(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"run", "--help"}, {"help", "run"}} {
		code, stdout, stderr := clitest.Run(t, t.Context(), newRoot(), args...)
		assert.Equal(t, cli.ExitOK, code)
		assert.Empty(t, stderr)
		assert.Contains(t, stdout, "Examples:\n  redlock run nightly-report -- ./report.sh", "redlock %v", args)
		clitest.AssertFits(t, stdout)
	}
	clitest.AssertHelpFits(t, newRoot())
}

func TestUnknownCommands(t *testing.T) {
	for arg, want := range map[string]string{
		"stauts":            "did you mean status",
		"demo":              "it is one of redlock-lab",
		"sim":               "it is one of redlock-lab",
		"redis://:s3cret@h": "masters are given with --nodes",
	} {
		code, stdout, stderr := clitest.Run(t, t.Context(), newRoot(), arg)
		clitest.AssertUsage(t, want, code, stdout, stderr)
	}
}
