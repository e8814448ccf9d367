//go:build unix

package redlock_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

// pasted says what is done with a line of a README's block of sh, and what it prints.
type pasted struct {
	in    string // the folder: checkout or app, which lie side by side
	want  string // a pattern
	notIt string // what is run in its place, because …
}

// readmeLines has each line of each block of sh in README.md, up to its comment.
var readmeLines = map[string]pasted{
	"go run ./cmd/redlock-lab demo":                          {in: "redlock", want: `All 7 steps went as they should\.`},
	"go run ./cmd/redlock-lab serve":                         {in: "redlock", notIt: "go run ./cmd/redlock-lab serve --help", want: `(?m)^Examples:$`}, // … it would not end
	"go run ./cmd/redlock-lab sim --seed 42 --html run.html": {in: "redlock", want: `\AThe timeline is in run\.html, .*\n.*violation.*\nfingerprint \w+\n\z`},
	"sh .ci/test": {in: "redlock", notIt: "sh -n .ci/test"}, // … it would run this test
	"go build -o /usr/local/bin/redlock ./cmd/redlock":                 {in: "redlock"},
	"redlock status nightly-report":                                    {in: "app", want: `(?m)^Free: `},
	"redlock nodes":                                                    {in: "app", want: `(?m)^ *3 of 3 masters can vote`},
	"redlock release --force nightly-report":                           {in: "app", notIt: "redlock release --force --yes nightly-report", want: `(?m)^There is nothing to break`}, // … there is no terminal to ask at
	"redlock acquire deploy --ttl 10m -w 1h --handle-file deploy.lock": {in: "app", want: `\A\z`},
	"redlock extend --handle-file deploy.lock":                         {in: "app", want: `\A\z`},
	"redlock release --handle-file deploy.lock":                        {in: "app", want: `\A\z`},
	"go mod tidy": {in: "app"},
	"go mod edit -require=github.com/quorumlock/redlock@v0.0.0 -replace=github.com/quorumlock/redlock=../redlock": {in: "app"},
}

// TestReadmeIsPasted does what a reader of README.md does, in a container: there is no HOME,
// nothing in the environment but PATH, a locale that others rarely have, and the masters'
// REDLOCK_NODES. Each line of sh is run by itself, each complete program is built and run as it
// is printed. What is otherwise here:
//
//   - The go command has its caches, and does not ask the network: what the module needs has
//     been fetched for this test.
//   - /usr/local/bin is a folder of the test, and so are the hosts redis-a, redis-b and redis-c.
//   - `redlock release --force` has --yes, as there is no terminal to ask at, and `sh .ci/test`,
//     which would run this test, is only parsed.
//   - `go get` and `go install` of the published module are not run. The checkout is in its
//     place, as the README has it for the time before the module is published.
func TestReadmeIsPasted(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what needs redis-server and builds the command")
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	place := newPlace(t)

	// In the text, between two blocks.
	build := "go build -o /usr/local/bin/redlock ./cmd/redlock"
	require.Contains(t, string(readme), "`"+build+"`")
	place.paste(t, build)

	place.shell(t, "app", "go mod init example.com/app")
	seen := map[string]bool{build: true}
	programs := 0
	for _, b := range fenced(string(readme)) {
		switch {
		case b.language == "sh":
			for line := range strings.Lines(b.text) {
				line, _, _ = strings.Cut(line, " #")
				if line = strings.TrimSpace(line); line != "" {
					place.paste(t, line)
					seen[line] = true
				}
			}
		case b.language == "go" && strings.HasPrefix(b.text, "package main\n"):
			place.write(t, fmt.Sprintf("app/program%d/main.go", programs), b.text)
			programs++
		}
	}
	assert.Len(t, seen, len(readmeLines), "lines that the README has no more")
	require.Equal(t, 1, programs)
	assert.Equal(t, "rebuilding the index\n", place.shell(t, "app", "go run ./program0"))
	assert.FileExists(t, filepath.Join(place.folder, "redlock", "run.html"))
}

// Complete programs of other pages are built as they are printed.
func TestProgramsOfTheDocsAreBuilt(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for i, b := range fenced(string(text)) {
			if b.language != "go" || !strings.HasPrefix(b.text, "package main\n") {
				continue
			}
			// Inside the module, for its go.mod, and not in ./..., as the name begins with _.
			folder, err := os.MkdirTemp(".", "_program")
			require.NoError(t, err)
			defer os.RemoveAll(folder)
			require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(b.text), 0o600))
			out, err := exec.Command("go", "build", "-o", os.DevNull, "./"+folder).CombinedOutput()
			require.NoError(t, err, "%s, block %d: %s", page, i+1, out)
		}
	}
}

// code is a fenced block.
type code struct{ language, text string }

func fenced(page string) (all []code) {
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		all = append(all, code{m[1], m[2]})
	}
	return all
}

// place is where a reader pastes: a folder with a checkout, an app and a bin.
type place struct {
	folder string
	env    []string
	here   *strings.Replacer // what is here for what the README has
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{folder: t.TempDir()}
	here := []string{"/usr/local/bin", filepath.Join(p.folder, "bin")}
	var urls []string
	for i, m := range redisserver.Start(t, 3) {
		here = append(here, fmt.Sprintf("redis-%c:6379", 'a'+i), m.Addr())
		urls = append(urls, m.URL())
	}
	p.here = strings.NewReplacer(here...)
	p.copyCheckout(t)
	require.NoError(t, os.Mkdir(filepath.Join(p.folder, "app"), 0o700))

	// go with its caches, and nothing of it in the environment of what is pasted
	goCommand, err := exec.LookPath("go")
	require.NoError(t, err)
	settings, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	require.NoError(t, err)
	at := strings.Split(strings.TrimSpace(string(settings)), "\n")
	require.Len(t, at, 3)
	p.write(t, "bin/go", fmt.Sprintf("#!/bin/sh\nexec env GOCACHE='%s' GOMODCACHE='%s' GOPATH='%s' GOPROXY=off GOSUMDB=off GOTOOLCHAIN=local GOWORK=off GOFLAGS='-trimpath -buildvcs=false' '%s' \"$@\"\n",
		at[0], at[1], at[2], goCommand))
	require.NoError(t, os.Chmod(filepath.Join(p.folder, "bin/go"), 0o700))
	p.env = []string{
		"PATH=" + filepath.Join(p.folder, "bin") + ":/usr/bin:/bin",
		"LC_ALL=tr_TR.UTF-8",
		"REDLOCK_NODES=" + strings.Join(urls, ","),
	}
	return p
}

// copyCheckout leaves out what a clone does not have.
func (p *place) copyCheckout(t *testing.T) {
	t.Helper()
	checkout := os.DirFS(".")
	require.NoError(t, fs.WalkDir(checkout, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".git" || path == "dist":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(p.folder, "redlock", path), 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(checkout, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(p.folder, "redlock", path), text, 0o600)
	}))
}

func (p *place) write(t *testing.T, file, text string) {
	t.Helper()
	file = filepath.Join(p.folder, file)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(p.here.Replace(text)), 0o600))
}

// paste runs a line of the README.
func (p *place) paste(t *testing.T, line string) {
	t.Helper()
	known, ok := readmeLines[line]
	require.True(t, ok, "no test knows this line of the README: %s", line)
	run := line
	if known.notIt != "" {
		run = known.notIt
	}
	assert.Regexp(t, known.want, p.shell(t, known.in, run), line)
}

// shell runs a line and returns what it prints. Anything on stderr is shown if it fails.
func (p *place) shell(t *testing.T, folder, line string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", p.here.Replace(line))
	cmd.Dir = filepath.Join(p.folder, folder)
	cmd.Env = p.env
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s%s", line, out, said.String())
	return string(out)
}
