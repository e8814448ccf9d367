//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/cmd/redlock/internal/run"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/testenv/session"
)

const commandPage = "../../docs/command.md"

// block is a fenced block of a page.
type block struct {
	line   int    // of the fence
	test   string // the name by which scripts ask for it
	notRun string // why no script runs it
	text   string
}

var (
	testMark   = regexp.MustCompile(`^<!-- test: ([a-z-]+) -->$`)
	notRunMark = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
)

// blocks returns the blocks of a page. The comment before a block says how it is tested.
func blocks(t *testing.T, file string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var inside *block
	before := ""
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case inside != nil && line == "```":
			all = append(all, *inside)
			inside = nil
		case inside != nil:
			inside.text += line + "\n"
		case strings.HasPrefix(line, "```"):
			inside = &block{line: i + 1}
			if m := testMark.FindStringSubmatch(before); m != nil {
				inside.test = m[1]
			}
			if m := notRunMark.FindStringSubmatch(before); m != nil {
				inside.notRun = m[1]
			}
		}
		before = line
	}
	require.Nil(t, inside, "a fence that is not closed")
	return all
}

// Each block of docs/command.md is run, or the page says why not.
func TestEachBlockOfTheCommandPageIsRun(t *testing.T) {
	scripts, err := filepath.Glob("testdata/docs/*.txtar")
	require.NoError(t, err)
	asked := map[string]string{}
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^(?:snippet|sample) ([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			asked[m[1]] = file
		}
	}
	names := map[string]bool{}
	for _, b := range blocks(t, commandPage) {
		at := fmt.Sprintf("%s:%d", commandPage, b.line)
		switch {
		case b.test == "" && b.notRun == "":
			t.Errorf("%s: no comment says which test runs it, nor why none does", at)
		case b.test != "" && asked[b.test] == "":
			t.Errorf("%s: no script in testdata/docs runs %s", at, b.test)
		case names[b.test]:
			t.Errorf("%s: there are two with the name %s", at, b.test)
		}
		names[b.test] = b.test != ""
	}
	for name, file := range asked {
		assert.True(t, names[name], "%s runs %s, which the page does not have", file, name)
	}
}

// The crontab of README.md is the one that is run here.
func TestReadmeShowsTheCrontabOfTheCommandPage(t *testing.T) {
	var shown []string
	for _, b := range blocks(t, "../../README.md") {
		if strings.Contains(b.text, "* * *") {
			shown = append(shown, b.text)
		}
	}
	var run []string
	for _, b := range blocks(t, commandPage) {
		if b.test == "cron" {
			run = append(run, b.text)
		}
	}
	require.Len(t, run, 1)
	assert.Equal(t, run, shown)
}

// The files in deploy are those that the page shows and its scripts run.
func TestDeployHasWhatTheCommandPageShows(t *testing.T) {
	shown := map[string]string{}
	for _, b := range blocks(t, commandPage) {
		shown[b.test] = b.text
	}
	for file, name := range map[string]string{
		"systemd/scheduler.service": "leader",
		"systemd/nodes.env":         "leader-env",
		"kubernetes/cronjob.yaml":   "cronjob",
	} {
		text, err := os.ReadFile("../../deploy/" + file)
		require.NoError(t, err)
		assert.Equal(t, shown[name], string(text), file)
	}
}

// The page describes every flag and every exit status.
func TestCommandPageIsComplete(t *testing.T) {
	text, err := os.ReadFile(commandPage)
	require.NoError(t, err)
	page := string(text)
	run.Command().Flags().VisitAll(func(f *pflag.Flag) {
		row := "(?m)^\\| "
		if f.Shorthand != "" {
			row += "`-" + f.Shorthand + "`, "
		}
		assert.Regexp(t, row+".*`--"+f.Name+"`", page)
	})
	for _, status := range []int{
		cli.ExitFailed, cli.ExitUsage, cli.ExitNoQuorum, cli.ExitBusy, cli.ExitLost, cli.ExitCannotExecute, cli.ExitNotFound,
	} {
		assert.Regexp(t, fmt.Sprintf(`(?m)^\| (\d+, )?%d\b`, status), page)
	}
	for _, variable := range []string{run.KeyVariable, run.TokenVariable, run.UntilVariable, masterlist.NodesVariable} {
		assert.Contains(t, page, "`"+variable+"`")
	}
	for _, c := range newRoot().Commands() {
		if c.GroupID == "locks" || c.GroupID == "masters" {
			assert.Contains(t, page, "\n## redlock "+c.Name())
		}
	}
}

// TestCommandPage runs the blocks of docs/command.md, each by a script in testdata/docs,
// with the words of TestSessions and
//
//	snippet NAME FILE     write a block to a file, with the test's values for the page's:
//	                      redis-a:6379… are the masters, /usr/local/bin is $WORK/bin,
//	                      /etc/redlock is $WORK/etc, and https://ledger.example is LEDGER
//	crontab FILE SCRIPT   write a script that runs a crontab's line as cron does
//	unit FILE SCRIPT      the same for a service of systemd
//	container FILE SCRIPT the same for a Dockerfile
//	cronjob FILE SCRIPT   the same for a CronJob of Kubernetes
//	sample NAME           write NAME.sh and NAME.want from a block that shows commands
//	                      and their output
//	like FILE             the last exec's stdout is like the file, except for numbers
//	durable I…            make masters keep every write
//	ledger                start a server that refuses the lower of two tokens
func TestCommandPage(t *testing.T) {
	page := map[string]string{}
	for _, b := range blocks(t, commandPage) {
		page[b.test] = b.text
	}
	session.Run(t, "testdata/docs", beginPage, session.Shell, session.Words{
		"snippet":   func(s *session.Session, args []string) error { return snippet(s, page, args) },
		"sample":    func(s *session.Session, args []string) error { return sample(s, page, args) },
		"crontab":   crontab,
		"unit":      unit,
		"container": container,
		"cronjob":   cronjob,
		"like":      like,
		"durable":   durable,
		"ledger":    ledger,
	})
}

// beginPage is session.Begin with a folder bin for programs of the archive, which become
// executable, and a home folder.
func beginPage(env *testscript.Env) error {
	bin := filepath.Join(env.WorkDir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	own, err := os.ReadDir(bin)
	if err != nil {
		return err
	}
	for _, program := range own {
		if err := os.Chmod(filepath.Join(bin, program.Name()), 0o700); err != nil {
			return err
		}
	}
	for name := range programs {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, name))
		}
		if err != nil {
			return err
		}
	}
	home := filepath.Join(env.WorkDir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
	env.Setenv("HOME", home)
	env.Vars = slices.DeleteFunc(env.Vars, func(v string) bool { return strings.HasPrefix(v, "XDG_CONFIG_HOME=") })
	return session.Begin(env)
}
