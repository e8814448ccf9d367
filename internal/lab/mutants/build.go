package main

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// root returns the folder of the module.
func root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/quorumlock/redlock").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// overlay is the input of `go build -overlay`: files that replace others.
type overlay struct{ Replace map[string]string }

// apply writes the changed files of the mutant into dir, and returns which files they replace.
// It does not change the source.
func (m mutant) apply(root, dir string) (overlay, error) {
	o := overlay{Replace: map[string]string{}}
	text := map[string]string{}
	read := func(file string) (string, error) {
		if s, known := text[file]; known {
			return s, nil
		}
		b, err := os.ReadFile(filepath.Join(root, file))
		return string(b), err
	}
	for _, e := range m.edits {
		s, err := read(e.file)
		if err != nil {
			return o, err
		}
		if n := strings.Count(s, e.old); n != 1 {
			return o, fmt.Errorf("mutant %s: %q occurs %d times in %s, want once", m.name, e.old, n, e.file)
		}
		text[e.file] = strings.Replace(s, e.old, e.new, 1)
	}
	if err := rehash(root, read, text); err != nil {
		return o, fmt.Errorf("mutant %s: %w", m.name, err)
	}
	for file, s := range text {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(s), 0o666); err != nil {
			return o, err
		}
		o.Replace[filepath.Join(root, file)] = path
	}
	return o, nil
}

// rehash replaces the hashes of the scripts that the mutant edits.
func rehash(root string, read func(string) (string, error), text map[string]string) error {
	const hashes, include = "redlock/internal/protocol/scripts.go", "--include wake.lua\n"
	for _, file := range []string{release, queue, propose, extend} {
		was, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		included, err := os.ReadFile(filepath.Join(root, wake))
		if err != nil {
			return err
		}
		now, err := read(file)
		if err != nil {
			return err
		}
		nowIncluded, err := read(wake)
		if err != nil {
			return err
		}
		before := sum(strings.Replace(string(was), include, string(included), 1))
		after := sum(strings.Replace(now, include, nowIncluded, 1))
		if before == after {
			continue
		}
		scripts, err := read(hashes)
		if err != nil {
			return err
		}
		if !strings.Contains(scripts, before) {
			return fmt.Errorf("the hash of %s is not in %s", file, hashes)
		}
		text[hashes] = strings.Replace(scripts, before, after, 1)
	}
	return nil
}

func sum(script string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(script))) }

// overlay writes the file that `go -overlay` reads to plant the mutant's bug.
func (m mutant) overlay(root, dir string) (file string, err error) {
	o, err := m.apply(root, dir)
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, list, 0o666)
}

// fails reports whether the mutant's test fails. Without the bug the test must pass, as every
// other run of the tests shows.
func (m mutant) fails(ctx context.Context, root, dir string) (bool, error) {
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-short", "-count=1", "-run", "^"+m.test+"$", "./quorum", "./redlock", "./redlock/internal/...")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil:
		return false, nil
	case !bytes.Contains(out, []byte("--- FAIL: "+m.test)):
		return false, fmt.Errorf("mutant %s: %w\n%s", m.name, err, bytes.TrimSpace(out))
	}
	return true, nil
}

// build builds the command with the mutant's bug in dir.
func (m mutant) build(ctx context.Context, root, dir string) (binary string, err error) {
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "redlock-lab")
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", binary, "./cmd/redlock-lab")
	cmd.Dir = root
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("mutant %s does not build: %w\n%s", m.name, err, said.Bytes())
	}
	return binary, nil
}
