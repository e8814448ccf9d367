package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The names of the subjects; the report uses some of them.
const (
	nothing = "true"
	locked  = "flock FILE true"
	trips   = "five PINGs, one after the other"
	started = "redlock version"
	quorate = "redlock run KEY -- true"
	withC   = quorate + ", with cgo"
)

// subjects returns what is measured, and a function to clean up. Binaries and the file of
// flock(1) are in dir.
func subjects(ctx context.Context, addrs []string, dir string) (all []*subject, done func(), err error) {
	pinged, done, err := pings(ctx, addrs)
	if err != nil {
		return nil, nil, err
	}
	urls := "--nodes=redis://" + strings.Join(addrs, ",redis://")
	static := filepath.Join(dir, "redlock")
	all = []*subject{
		{name: nothing, run: process("true")},
		{name: locked, run: process("flock", filepath.Join(dir, "lock"), "true")},
		{name: trips, run: pinged},
		{name: started, run: process(static, "version")},
		{name: quorate, run: process(static, "run", urls, "overhead", "--", "true")},
	}
	if err := build(ctx, static, "CGO_ENABLED=0"); err != nil {
		done()
		return nil, nil, err
	}
	// With a C compiler, Go links the command dynamically by default; the dynamic linker and
	// libc's threads are then part of its cost.
	cgo, err := output(ctx, "", "go", "env", "CGO_ENABLED")
	if err == nil && cgo == "1" {
		dynamic := filepath.Join(dir, "redlock-cgo")
		err = build(ctx, dynamic, "CGO_ENABLED=1")
		all = append(all, &subject{name: withC, run: process(dynamic, "run", urls, "overhead", "--", "true")})
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return all, done, nil
}

// process runs a program to its end. If it fails, its output is in the error.
func process(name string, args ...string) func() error {
	return func() error {
		cmd := exec.Command(name, args...)
		var said bytes.Buffer // a pipe costs all subjects the same
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
		}
		return nil
	}
}

// pings asks one server after the other, on connections that are already open.
func pings(ctx context.Context, addrs []string) (run func() error, done func(), err error) {
	var conns []net.Conn
	done = func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
	for _, addr := range addrs {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			done()
			return nil, nil, err
		}
		conns = append(conns, c)
	}
	const ask, answer = "PING\r\n", "+PONG\r\n"
	heard := make([]byte, len(answer))
	return func() error {
		for _, c := range conns {
			if _, err := c.Write([]byte(ask)); err != nil {
				return err
			}
			if _, err := io.ReadFull(c, heard); err != nil {
				return err
			}
			if string(heard) != answer {
				return fmt.Errorf("PING is answered with %q", heard)
			}
		}
		return nil
	}, done, nil
}

// build builds cmd/redlock of the module that is measured.
func build(ctx context.Context, file, env string) error {
	root, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/quorumlock/redlock")
	if err == nil {
		_, err = output(ctx, env, "go", "-C", root, "build", "-o", file, "./cmd/redlock")
	}
	return err
}

// output returns the output of a program, which runs with env added to the environment.
func output(ctx context.Context, env, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	if env != "" {
		cmd.Env = append(os.Environ(), env)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
