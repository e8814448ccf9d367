package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
)

// refresh rewrites the patches that still apply, even where the lines around a change differ
// now, so that their line numbers and context are exact again. It reports all others.
func refresh(root string, all []mutant) error {
	var failed []error
	for _, m := range all {
		now, err := m.refreshed(root)
		if err == nil && now.String() != m.String() {
			fmt.Println(m.name)
			err = os.WriteFile(m.file, []byte(now.String()), 0o666)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// refreshed returns the bug with an exact patch.
func (m mutant) refreshed(root string) (mutant, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	text, err := m.apply(root, dir, "-C0")
	if err != nil {
		return m, err
	}
	return m.changing(root, dir, text)
}

// named matches the lines of a diff that repeat the names of files or name their hashes.
var named = regexp.MustCompile(`(?m)^(diff --git|index) .*\n`)

// changing returns the bug with the patch that changes files to these texts. It has the least
// context with which its place is the only one.
func (m mutant) changing(root, dir string, text map[string]string) (mutant, error) {
	was := map[string]string{}
	for file := range text {
		s, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return m, err
		}
		was[file] = string(s)
	}
	if err := errors.Join(writeFiles(filepath.Join(dir, "a"), was), writeFiles(filepath.Join(dir, "b"), text)); err != nil {
		return m, err
	}
	var failed error
	for context := 1; context <= 10; context++ {
		diff, err := git(dir, "", "diff", "--no-index", "--no-prefix", fmt.Sprintf("-U%d", context), "a", "b")
		if err == nil { // as with diff, status 1 means that there are differences
			return m, fmt.Errorf("%s: changes nothing", m.file)
		}
		m.patch = named.ReplaceAllString(diff, "")
		now, err := m.apply(root, dir)
		if err == nil && maps.Equal(now, text) {
			return m, nil
		}
		failed = err
	}
	return m, fmt.Errorf("%s: no context makes its place the only one: %v", m.file, failed)
}
