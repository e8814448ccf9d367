//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/testenv/session"
)

// snippet writes a block, with the addresses and folders of this test in place of the page's.
func snippet(s *session.Session, page map[string]string, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: snippet NAME FILE")
	}
	text, ok := page[args[0]]
	if !ok {
		return fmt.Errorf("the page has no block %q", args[0])
	}
	work := s.Getenv("WORK")
	here := []string{"/usr/local/bin", work + "/bin", "/etc/redlock", work + "/etc"}
	if ledger := s.Getenv("LEDGER"); ledger != "" {
		here = append(here, "https://ledger.example", ledger)
	}
	for i, m := range s.Servers {
		here = append(here, fmt.Sprintf("redis-%c:6379", 'a'+i), m.Addr())
	}
	mode := os.FileMode(0o600)
	if strings.HasPrefix(text, "#!") {
		mode = 0o700
	}
	return os.WriteFile(s.MkAbs(args[1]), []byte(strings.NewReplacer(here...).Replace(text)), mode)
}

// quoted quotes a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// A crontab's time has five fields.
var cronLine = regexp.MustCompile(`^((?:[-0-9*,/]+\s+){5})(\S.*)$`)

// crontab accepts lines that set variables, and one line with a time and a command.
func crontab(s *session.Session, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: crontab FILE SCRIPT")
	}
	env := []string{"LOGNAME=somebody", "SHELL=/bin/sh", "PATH=/usr/bin:/bin"}
	command := ""
	for line := range strings.Lines(s.ReadFile(args[0])) {
		line = strings.TrimSpace(line)
		switch m := cronLine.FindStringSubmatch(line); {
		case line == "" || strings.HasPrefix(line, "#"):
		case m == nil && regexp.MustCompile(`^[A-Z_]+=`).MatchString(line):
			env = append(env, line) // the last assignment of a variable counts
		case m == nil:
			return fmt.Errorf("neither a variable nor five fields and a command: %s", line)
		case command != "":
			return errors.New("more than one command")
		case strings.Contains(m[2], "%"):
			return errors.New("a % ends the command in a crontab")
		default:
			command = m[2]
		}
	}
	if command == "" {
		return errors.New("no command")
	}
	return writeProgram(s, args[1], env, "/bin/sh", "-c", command)
}

// unit runs a service. systemd checks the file where it is installed.
func unit(s *session.Session, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: unit FILE SCRIPT")
	}
	file := s.MkAbs(args[0])
	// systemd-analyze reports on other units too. It reports unknown settings in ours, but still
	// succeeds.
	said, _ := exec.Command("systemd-analyze", "verify", file).CombinedOutput()
	if strings.Contains(string(said), filepath.Base(file)) {
		return fmt.Errorf("systemd-analyze: %s", said)
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	var argv []string
	for line := range strings.Lines(s.ReadFile(args[0])) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "EnvironmentFile":
			for set := range strings.Lines(s.ReadFile(value)) {
				if set = strings.TrimSpace(set); set != "" && !strings.HasPrefix(set, "#") {
					env = append(env, set)
				}
			}
		case "ExecStart":
			argv = strings.Fields(value) // the value has no quotes
		}
	}
	if len(argv) == 0 || !strings.HasPrefix(argv[0], "/") {
		return errors.New("no ExecStart with the path of a program")
	}
	return writeProgram(s, args[1], env, argv...)
}

// container runs the ENTRYPOINT and CMD of a Dockerfile, with the masters of this test.
func container(s *session.Session, args []string) error {
	return contained(s, args, "ENTRYPOINT", "CMD")
}

// cronjob runs the container of a Kubernetes CronJob in the same way.
func cronjob(s *session.Session, args []string) error { return contained(s, args, "command:", "args:") }

func contained(s *session.Session, args []string, names ...string) error {
	if len(args) != 2 {
		return errors.New("usage: container or cronjob FILE SCRIPT")
	}
	var argv []string
	for _, name := range names {
		m := regexp.MustCompile(`(?m)^ *` + name + ` (.*)$`).FindStringSubmatch(s.ReadFile(args[0]))
		if m == nil {
			return errors.New("no " + name)
		}
		var words []string
		if err := json.Unmarshal([]byte(m[1]), &words); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		argv = append(argv, words...)
	}
	return writeProgram(s, args[1], []string{"PATH=" + s.Getenv("PATH"), masterlist.NodesVariable + "=" + s.Getenv(masterlist.NodesVariable)}, argv...)
}

// writeProgram writes a script that starts a program with its own environment. HOME is the folder
// in which the script is started.
func writeProgram(s *session.Session, file string, env []string, argv ...string) error {
	line := `exec env -i HOME="$PWD" GORACE=atexit_sleep_ms=0`
	for _, word := range append(env, argv...) {
		line += " " + quoted(word)
	}
	return os.WriteFile(s.MkAbs(file), []byte(line+"\n"), 0o700)
}

// sample separates the commands of a session from their output.
func sample(s *session.Session, page map[string]string, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: sample NAME")
	}
	var commands, output string
	for line := range strings.Lines(page[args[0]]) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands += command
		} else {
			output += line
		}
	}
	if commands == "" || output == "" {
		return fmt.Errorf("the block %q shows no command and its output", args[0])
	}
	err := os.WriteFile(s.MkAbs(args[0]+".sh"), []byte(commands), 0o700)
	return errors.Join(err, os.WriteFile(s.MkAbs(args[0]+".want"), []byte(output), 0o600))
}

// These parts differ from run to run.
var (
	varying  = regexp.MustCompile(`127\.0\.0\.1:\d+|\b\d{4}-\d\d-\d\dT[\d:.]+Z|\b[0-9a-f]{8}\b|[+-]?\d+\.\d[\d.]*|\b\d{4,}\b|\bp(?:id":|rocess )\d+|\b(\d+(ms|s|m|h|d))+\b`)
	question = regexp.MustCompile(`(?m)^.*Type yes.*$`)
	spacing  = regexp.MustCompile(`\s+`)
)

func like(s *session.Session, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: like FILE")
	}
	plain := func(text string) string {
		return spacing.ReplaceAllString(varying.ReplaceAllString(question.ReplaceAllString(text, ""), "#"), " ")
	}
	got := s.ReadFile("stdout")
	if plain(got) != plain(s.ReadFile(args[0])) {
		return fmt.Errorf("the page shows something else than\n%s", got)
	}
	return nil
}

func durable(s *session.Session, args []string) error {
	return s.OnEach(args, func(i int) error {
		err := s.Admin[i].ConfigSet(context.Background(), "appendonly", "yes").Err()
		return errors.Join(err, s.Admin[i].ConfigSet(context.Background(), "appendfsync", "always").Err())
	})
}

// ledger is the resource that a lock protects. It keeps the highest token, and writes what became
// of each request to ledger.log.
func ledger(s *session.Session, args []string) error {
	if len(args) != 0 {
		return errors.New("usage: ledger")
	}
	var mu sync.Mutex
	highest := int64(0)
	log := s.MkAbs("ledger.log")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		what := "written\n"
		token, err := strconv.ParseInt(r.Header.Get("Fencing-Token"), 10, 64)
		switch {
		case err != nil || r.Method != http.MethodPut:
			w.WriteHeader(http.StatusBadRequest)
			what = "bad\n"
		case token < highest:
			w.WriteHeader(http.StatusPreconditionFailed)
			what = "refused\n"
		}
		highest = max(highest, token)
		said, _ := os.ReadFile(log)
		_ = os.WriteFile(log, append(said, what...), 0o600)
	}))
	s.Defer(server.Close)
	s.Set("LEDGER", server.URL)
	return nil
}
