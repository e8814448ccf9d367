//go:build unix

// Package session runs testscript scripts that are sessions at a shell, with real masters.
package session

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

// Limit is longer than anything in a session takes on a loaded machine. Nothing that works waits
// for it.
const Limit = time.Minute

// Words is a language for scripts. It has the function of each word.
type Words map[string]func(*Session, []string) error

// Shell has these words, in addition to those of testscript:
//
//	masters N [-linked] [-tls] [-password WORD]
//	                      start N masters, numbered from 1, for REDLOCK_NODES, and set
//	                      NODE1… to their URLs and ADDR1… to host:port; linked: each
//	                      behind a proxy, around which DIRECT_NODES leads;
//	                      tls: a folder TLS has ca.crt, redis.crt and redis.key
//	down I…, up I…        kill masters, start them again without their memory
//	freeze I…, thaw I…    stop their processes, let them go on
//	cut I…, heal I…       hold back all that passes their proxies, pass it on
//	held KEY N            wait until exactly N masters have the key
//	waiting KEY N         wait until N clients are in its queue on each master
//	forget KEY I…         delete the key there
//	tell I COMMAND…       send each master I (all: each) a Redis command, which must succeed
//	nothing [-expired]    wait until no master has any key but fences; without -expired, no
//	                      key may have expired
//	export NAME=VALUE…, unset NAME…
//	                      change the environment of what is started afterwards
//	start NAME PROGRAM… [< FILE]
//	                      start a program, which prints to NAME.out and NAME.err
//	ended NAME STATUS     wait until it ended, with that status or by that signal
//	exits STATUS PROGRAM… [< FILE]
//	                      start and ended
//	says PATTERN          stderr was one line, by redlock, without a password
//	signal SIGNAL WHO     WHO is a NAME, or a file with a process's number
//	stopped WHO, gone WHO wait until it is stopped, or has ended
//	alive WHO             it has not ended
//	children WHO N        wait until it has N child processes
//	await FILE [PATTERN]  wait until there is such a file, with such a text
//
// Each wait is for an event, and fails after a minute.
var Shell = Words{
	"masters":  (*Session).masters,
	"down":     (*Session).down,
	"up":       (*Session).up,
	"freeze":   (*Session).freeze,
	"thaw":     (*Session).thaw,
	"cut":      (*Session).cut,
	"heal":     (*Session).heal,
	"held":     (*Session).held,
	"waiting":  (*Session).waiting,
	"forget":   (*Session).forget,
	"tell":     (*Session).tell,
	"nothing":  (*Session).nothing,
	"export":   (*Session).export,
	"unset":    (*Session).unset,
	"start":    (*Session).start,
	"ended":    (*Session).ended,
	"exits":    (*Session).exits,
	"says":     (*Session).says,
	"signal":   (*Session).signal,
	"stopped":  (*Session).stopped,
	"gone":     (*Session).gone,
	"alive":    (*Session).alive,
	"children": (*Session).children,
	"await":    (*Session).await,
}

// Run runs the scripts in a folder, in these languages. begin prepares each script.
func Run(t *testing.T, folder string, begin func(*testscript.Env) error, languages ...Words) {
	deadline := time.Now().Add(9 * Limit)
	if limit, ok := t.Deadline(); ok && limit.Before(deadline) {
		deadline = limit
	}
	all := map[string]func(*testscript.TestScript, bool, []string){}
	for _, language := range languages {
		for name, do := range language {
			all[name] = scriptWord(do)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 folder,
		Deadline:            deadline,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               begin,
		Cmds:                all,
	})
}

// Session has the masters and programs that a script has started.
type Session struct {
	*testscript.TestScript
	t        testscript.T
	env      []string
	Servers  []*redisserver.Server
	links    []*redisserver.Link // none, or one for each server
	Admin    []*redis.Client     // not through the links
	frozen   []bool
	programs map[string]*program
}

type sessionOf struct{}

// Begin prepares a script for Shell.
func Begin(env *testscript.Env) error {
	env.Setenv("NO_COLOR", "1")
	if os.Getenv("GORACE") == "" {
		env.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each program's end takes a second
	}
	s := &Session{t: env.T(), env: slices.Clone(env.Vars), programs: map[string]*program{}}
	env.Values[sessionOf{}] = s
	env.Defer(s.end)
	return nil
}

// end leaves no process behind. It logs the output of the programs for which a failed script did
// not wait.
func (s *Session) end() {
	for name, p := range s.programs {
		how := "still runs"
		if p.running() {
			p.kill()
		} else if how = exitStatus(p.cmd.ProcessState); p.known {
			continue
		}
		s.Logf("%s: %s\n%s", name, how, p.printed())
	}
	for _, l := range s.links {
		l.Close()
	}
	for _, m := range s.Servers {
		m.Stop()
	}
}

// scriptWord adapts a word for testscript.
func scriptWord(do func(*Session, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this word has no opposite")
		}
		s := ts.Value(sessionOf{}).(*Session)
		s.TestScript = ts
		ts.Check(do(s, args))
	}
}

// Eventually polls a condition for which there is no event. It fails after Limit.
func Eventually(what string, holds func() bool) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	never := time.After(Limit)
	for !holds() {
		select {
		case <-tick.C:
		case <-never:
			return errors.New("never: " + what)
		}
	}
	return nil
}

// export sets variables as testscript's env does, but for start and exits too.
func (s *Session) export(args []string) error {
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			return errors.New("usage: export NAME=VALUE…")
		}
		s.Set(name, value)
	}
	return nil
}

// Set sets a variable for all programs that a script starts, by a word of testscript or of Shell.
func (s *Session) Set(name, value string) {
	s.forgetenv(name)
	s.env = append(s.env, name+"="+value)
	s.Setenv(name, value)
}

func (s *Session) unset(args []string) error {
	for _, name := range args {
		s.forgetenv(name)
		s.Setenv(name, "")
	}
	return nil
}

func (s *Session) forgetenv(name string) {
	s.env = slices.DeleteFunc(s.env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// numbers returns the indexes of the masters in args, from 0.
func (s *Session) numbers(args []string) (which []int, err error) {
	for _, a := range args {
		i, err := strconv.Atoi(a)
		if err != nil || i < 1 || i > len(s.Servers) {
			return nil, fmt.Errorf("no master %q", a)
		}
		which = append(which, i-1)
	}
	return which, nil
}
