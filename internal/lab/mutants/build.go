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

// rehash replaces the hashes of the scripts that the mutant changes.
func rehash(root string, text map[string]string) error {
	const scripts, include = "internal/script/", "--include wake.lua\n"
	read := func(file string) (was, now string, err error) {
		b, err := os.ReadFile(filepath.Join(root, file))
		was = string(b)
		if now, changed := text[file]; changed {
			return was, now, err
		}
		return was, was, err
	}
	wakeWas, wakeNow, err := read(scripts + "wake.lua")
	if err != nil {
		return err
	}
	for _, name := range []string{"release", "force", "queue", "propose", "extend", "inspect"} {
		was, now, err := read(scripts + name + ".lua")
		if err != nil {
			return err
		}
		before := sum(strings.Replace(was, include, wakeWas, 1))
		after := sum(strings.Replace(now, include, wakeNow, 1))
		if before == after {
			continue
		}
		_, hashes, err := read(scripts + "script.go")
		if err != nil {
			return err
		}
		if !strings.Contains(hashes, before) {
			return fmt.Errorf("the hash of %s.lua is not in %sscript.go", name, scripts)
		}
		text[scripts+"script.go"] = strings.Replace(hashes, before, after, 1)
	}
	return nil
}

func sum(script string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(script))) }

// overlay writes the file that `go -overlay` reads to plant the mutant's bug, and in dir the files
// that replace those of the source.
func (m mutant) overlay(root, dir string) (file string, err error) {
	text, err := m.apply(root, dir)
	if err != nil {
		return "", err
	}
	if err := rehash(root, text); err != nil {
		return "", fmt.Errorf("%s: %w", m.file, err)
	}
	planted := filepath.Join(dir, "planted")
	if err := writeFiles(planted, text); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file := range text {
		replace[filepath.Join(root, file)] = filepath.Join(planted, file)
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
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
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-short", "-count=1", "-run", "^"+m.test+"$", "./quorum", "./redlock", "./redlock/election", "./redlock/internal/...", "./internal/trylock")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil:
		return false, nil
	case !m.failed(out):
		return false, fmt.Errorf("mutant %s: %w\n%s", m.name, err, bytes.TrimSpace(out))
	}
	return true, nil
}

// failed reports whether the output says that the mutant's test failed. A panic in a synctest bubble ends
// the process before that is said: then the stack has the test.
func (m mutant) failed(out []byte) bool {
	test, _, _ := strings.Cut(m.test, "/")
	return bytes.Contains(out, []byte("--- FAIL: "+m.test)) ||
		bytes.Contains(out, []byte("panic: ")) && bytes.Contains(out, []byte("."+test+"."))
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
