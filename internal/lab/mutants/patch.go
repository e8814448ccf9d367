package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is a bug, as its patch file describes it, and how it is found.
type mutant struct {
	file  string // of the patch
	name  string
	story string   // what the bug breaks
	test  string   // the test that shows it; empty if the simulation does
	flags []string // of the simulation, besides its seeds
	patch string   // the unified diff
}

// folder is where the patches are, in a folder for each subject.
const folder = "internal/lab/mutants"

// load returns the bugs of all patch files, ordered by subject and name.
func load(root string) (all []mutant, err error) {
	files, err := filepath.Glob(filepath.Join(root, folder, "*", "*.patch"))
	for _, file := range files {
		text, unread := os.ReadFile(file)
		m, malformed := parse(file, string(text))
		all, err = append(all, m), errors.Join(err, unread, malformed)
	}
	return all, err
}

// header is what precedes the diff: a line for the story, a line for how the bug is found, and
// an empty line.
var header = regexp.MustCompile(`^(.+)\nfound by: (?:sim((?: \S+)*)|(Test\S+))\n\n`)

// parse returns the bug that a patch file plants.
func parse(file, text string) (mutant, error) {
	match := header.FindStringSubmatch(text)
	if match == nil {
		return mutant{}, fmt.Errorf(`%s: want a line that says what the bug breaks, a line "found by: sim FLAGS" or "found by: TestName", an empty line, and a diff`, file)
	}
	return mutant{
		file:  file,
		name:  strings.TrimSuffix(filepath.Base(file), ".patch"),
		story: match[1],
		flags: strings.Fields(match[2]),
		test:  match[3],
		patch: text[len(match[0]):],
	}, nil
}

// String returns the text of the patch file.
func (m mutant) String() string {
	by := m.test
	if by == "" {
		by = strings.Join(append([]string{"sim"}, m.flags...), " ")
	}
	return m.story + "\nfound by: " + by + "\n\n" + m.patch
}

var (
	patched = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)
	hunk    = regexp.MustCompile(`(?m)^@@ -\d+(,\d+)? \+\d+(,\d+)? @@`)
)

// apply returns the files that the bug changes, with their new texts. Hunks may have moved to
// any line. As git takes the place that is nearest to a hunk's line, apply lets it search from
// the first line and from the last, and fails if the results differ. The options go to git
// apply. The source stays as it is; dir holds the copies.
func (m mutant) apply(root, dir string, options ...string) (map[string]string, error) {
	fromTop, err := m.applyAt("2", root, filepath.Join(dir, "top"), options) // 1 would mean: only there
	if err != nil {
		return nil, err
	}
	fromEnd, err := m.applyAt("1000000", root, filepath.Join(dir, "end"), options)
	if err == nil && !maps.Equal(fromTop, fromEnd) {
		err = fmt.Errorf("%s: ambiguous: a hunk applies at several places", m.file)
	}
	return fromTop, err
}

// applyAt applies the patch to copies of its files in dir, as if all its hunks were for this line.
func (m mutant) applyAt(line, root, dir string, options []string) (map[string]string, error) {
	text := map[string]string{}
	for _, match := range patched.FindAllStringSubmatch(m.patch, -1) {
		was, err := os.ReadFile(filepath.Join(root, match[1]))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.file, err)
		}
		text[match[1]] = string(was)
	}
	if err := writeFiles(dir, text); err != nil {
		return nil, err
	}
	patch := hunk.ReplaceAllString(m.patch, "@@ -"+line+"$1 +"+line+"$2 @@")
	if out, err := git(dir, patch, append([]string{"apply", "-p1", "--whitespace=nowarn"}, options...)...); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", m.file, err, strings.TrimSpace(out))
	}
	for file := range text {
		now, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		text[file] = string(now)
	}
	return text, nil
}

// writeFiles writes files into dir.
func writeFiles(dir string, text map[string]string) error {
	for file, s := range text {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(s), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// git runs git in dir, where neither a repository nor anybody's settings change what it does.
func git(dir, stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), err
}
