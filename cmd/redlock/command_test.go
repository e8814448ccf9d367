package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/leash"
)

// TestMain makes of this binary all the programs that scripts run, by the name it is
// called by.
func TestMain(m *testing.M) { testscript.Main(leakFree{m}, programs) }

// programs has what scripts run, by name.
var programs = map[string]func(){"redlock": main}

// leakFree are tests that leave no goroutine behind.
type leakFree struct{ testscript.TestingM }

func (m leakFree) Run() int {
	// Under nohup(1) the programs would ignore SIGHUP as well.
	signal.Notify(make(chan os.Signal, 1), append(leash.Endings(), leash.Messages()...)...)
	code := m.TestingM.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return code
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := runArgs(t, t.Context(), newRoot(), "version")
	assert.Equal(t, exitOK, code)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, "github.com/quorumlock/redlock")
	assert.Contains(t, stdout, "go1.")
}

// What is released is stamped, wherever it was built.
func TestVersionIsStamped(t *testing.T) {
	defer func(before string) { release = before }(release)
	release = "v1.2.3"
	_, stdout, _ := runArgs(t, t.Context(), newRoot(), "--version")
	assert.Equal(t, "redlock version v1.2.3\n", stdout)
	_, stdout, _ = runArgs(t, t.Context(), newRoot(), "version")
	assert.Regexp(t, `\Aredlock +v1\.2\.3\n`, stdout)
}

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, args := range [][]string{{"demo"}, {"demo", "--json"}, {"version"}} {
		var stderr bytes.Buffer
		code := run(t.Context(), newRoot(), args, fullDisk{}, &stderr)
		goleak.VerifyNone(t)
		assert.Equal(t, exitFailed, code, "redlock %v", args)
		assertOneLine(t, stderr.String())
		assert.Contains(t, stderr.String(), "no space left")
	}
}
