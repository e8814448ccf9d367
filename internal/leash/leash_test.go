//go:build unix

package leash

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStatus(t *testing.T) {
	for line, want := range map[string]int{
		"true": 0, "exit 3": 3, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137, "kill -SEGV $$": 139,
	} {
		s := newSession(t, long)
		outcome, err := s.run(line)
		require.NoError(t, err)
		assert.Equal(t, Outcome{Status: want}, outcome, line)
		assert.Equal(t, []What{Started, Ended}, s.whats())
	}
}

// A second command gets what the first one got: neither the niceness that we have given ourselves
// meanwhile, nor the signal that we ignore since.
func TestTheNextCommandGetsTheSame(t *testing.T) {
	parent, err := exec.Command("ps", "-o", "ni=", "-p", strconv.Itoa(os.Getppid())).Output()
	require.NoError(t, err)
	for range 2 {
		s := newSession(t, long)
		_, err := s.run(`sleep 0.3; nice >$F; grep SigIgn /proc/self/status >$F 2>/dev/null`)
		require.NoError(t, err)
		assert.Equal(t, strings.TrimSpace(string(parent)), <-s.heard)
		if runtime.GOOS == "linux" {
			var ignored string
			for line := range s.heard {
				if rest, ok := strings.CutPrefix(line, "SigIgn:"); ok {
					ignored = strings.TrimSpace(rest)
					break
				}
			}
			mask, err := strconv.ParseUint(ignored, 16, 64)
			require.NoError(t, err)
			assert.Zero(t, mask>>(syscall.SIGTTOU-1)&1, "SIGTTOU is ignored")
		}
	}
}

func TestTheCommandHasAGroupOfItsOwn(t *testing.T) {
	s := newSession(t, long)
	_, err := s.run(`ps -o pid= -o pgid= -p $$ >$F`)
	require.NoError(t, err)
	fields := strings.Fields(<-s.heard)
	assert.Equal(t, fields[0], fields[1])
	assert.Equal(t, strconv.Itoa(s.events[0].PID), fields[0])
	assert.NotEqual(t, strconv.Itoa(syscall.Getpgrp()), fields[1])
}

func TestAScriptWithoutItsShell(t *testing.T) {
	s := newSession(t, long)
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte(`exit "$1"`), 0o700))
	outcome, err := s.exec(script, "script", "7")
	require.NoError(t, err)
	assert.Equal(t, 7, outcome.Status)
}

func TestWhatCannotBeStarted(t *testing.T) {
	s := newSession(t, long)
	_, err := s.exec(t.TempDir(), "x")
	require.ErrorIs(t, err, syscall.EACCES)
	_, err = s.exec("/nonexistent", "x")
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Empty(t, s.events)
}

func TestWithoutALeaseNothingStarts(t *testing.T) {
	s := newSession(t, 0)
	outcome, err := s.run("echo started >$F")
	require.NoError(t, err)
	assert.ErrorIs(t, outcome.Lost, ErrRunningOut)
	s.lease.lose(errTaken)
	outcome, err = s.run("echo started >$F")
	require.NoError(t, err)
	assert.ErrorIs(t, outcome.Lost, errTaken)
	assert.Empty(t, s.events)
	assert.Empty(t, s.heard)
}

// A command that ends by itself after SIGTERM has lost its lease all the same.
func TestALeaseRunsOut(t *testing.T) {
	s := newSession(t, 3*time.Second)
	s.grace = 2700 * time.Millisecond
	outcome, err := s.run(`trap 'echo asked >$F; exit 0' TERM; while :; do sleep 0.01; done`)
	require.NoError(t, err)
	assert.Equal(t, Outcome{Lost: ErrRunningOut}, outcome)
	assert.Equal(t, "asked", <-s.heard)
	assert.Equal(t, []What{Started, Ending, Ended}, s.whats())
}

func TestWhoIgnoresSIGTERMIsKilledBeforeTheEnd(t *testing.T) {
	for name, grace := range map[string]time.Duration{"asked": 400 * time.Millisecond, "not asked": 0} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, 600*time.Millisecond)
			s.grace = grace
			outcome, err := s.run(`trap '' TERM; while :; do :; done`)
			require.NoError(t, err)
			assert.Equal(t, Outcome{Status: 137, Lost: ErrRunningOut}, outcome)
			want := []What{Started, Ending, Killed, Ended}
			if grace == 0 {
				want = []What{Started, Killed, Ended}
			}
			assert.Equal(t, want, s.whats())
			assert.True(t, s.killed.Before(s.lease.Until()), "killed %v after the end", s.killed.Sub(s.lease.Until()))
		})
	}
}

func TestALeaseThatMovesOn(t *testing.T) {
	s := newSession(t, time.Second)
	s.grace = 200 * time.Millisecond
	first := s.lease.Until()
	moves := time.AfterFunc(50*time.Millisecond, func() { s.lease.move(time.Now().Add(long)) })
	defer moves.Stop()
	end := time.AfterFunc(1200*time.Millisecond, func() { s.signals <- syscall.SIGINT })
	defer end.Stop()
	outcome, err := s.run(`trap 'exit 4' INT; while :; do sleep 0.01; done`)
	require.NoError(t, err)
	assert.Equal(t, Outcome{Status: 4}, outcome)
	assert.True(t, time.Now().After(first))
	assert.Equal(t, []What{Started, Forwarded, Ended}, s.whats())
}

// A command that got SIGTERM is killed in time, even if its lease is renewed later.
func TestALeaseThatMovesOnTooLate(t *testing.T) {
	s := newSession(t, 600*time.Millisecond)
	s.on = func(e Event) {
		if e.What == Ending {
			s.lease.move(time.Now().Add(long))
		}
	}
	outcome, err := s.run(`trap '' TERM; while :; do sleep 0.01; done`)
	require.NoError(t, err)
	assert.Equal(t, Outcome{Status: 137, Lost: ErrRunningOut}, outcome)
}

// After a lease was taken away, another client may already have it: the command gets no SIGTERM.
func TestALeaseIsTakenAway(t *testing.T) {
	s := newSession(t, long)
	go func() {
		<-s.heard
		s.lease.lose(errTaken)
	}()
	outcome, err := s.run(`trap 'exit 0' TERM; echo started >$F; while :; do sleep 0.01; done`)
	require.NoError(t, err)
	assert.Equal(t, 137, outcome.Status)
	assert.ErrorIs(t, outcome.Lost, errTaken)
	assert.Equal(t, []What{Started, Killed, Ended}, s.whats())
}

func TestACommandThatEndsWithItsLeaseHasLostIt(t *testing.T) {
	s := newSession(t, long)
	s.on = func(e Event) {
		if e.What == Started {
			s.lease.lose(errTaken)
		}
	}
	outcome, err := s.run(`exit 0`)
	require.NoError(t, err)
	assert.ErrorIs(t, outcome.Lost, errTaken)
}

// Signals reach all processes of the group.
func TestSignalsArePassedOn(t *testing.T) {
	for _, signal := range append(Endings(), syscall.SIGUSR1, syscall.SIGUSR2) {
		s := newSession(t, long)
		go func() {
			<-s.heard
			<-s.heard
			s.signals <- signal
		}()
		n := strconv.Itoa(int(signal.(syscall.Signal)))
		outcome, err := s.run(`
			trap : ` + n + `
			sh -c 'trap "echo child >$F; exit 0" ` + n + `; echo ready >$F; while :; do sleep 0.01; done' |
			sh -c 'trap "exit 9" ` + n + `; echo ready >$F; while :; do sleep 0.01; done'`)
		require.NoError(t, err)
		assert.Equal(t, Outcome{Status: 9}, outcome, signal.String())
		assert.Equal(t, "child", <-s.heard)
	}
}

func TestWhatIsLeftBehindIsEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		trap string
		want []What
	}{
		"by SIGTERM": {"", []What{Started, Ended, LeftOver}},
		"by SIGKILL": {`trap "" TERM;`, []What{Started, Ended, LeftOver, LeftOver}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, long)
			s.grace = 100 * time.Millisecond
			outcome, err := s.run(`mkfifo $F.2; sh -c '` + tc.trap + `echo ready >$F.2; while :; do sleep 0.01; done' & read x <$F.2; exit 2`)
			require.NoError(t, err)
			assert.Equal(t, Outcome{Status: 2, LeftOver: true}, outcome)
			assert.Equal(t, tc.want, s.whats())
		})
	}
}

func TestWhatSoonEndsByItselfIsLeftAlone(t *testing.T) {
	s := newSession(t, long)
	outcome, err := s.run(`sh -c 'trap "echo asked >$F" TERM; sleep 0.02; echo done >$F' & exit 2`)
	require.NoError(t, err)
	assert.Equal(t, Outcome{Status: 2}, outcome)
	assert.Equal(t, "done", <-s.heard)
}

// The processes that the command leaves behind are killed before the lease ends, too.
func TestWhatIsLeftBehindDoesNotOutliveTheLease(t *testing.T) {
	s := newSession(t, time.Second)
	s.grace = 450 * time.Millisecond
	outcome, err := s.run(`sh -c 'trap "" TERM; while :; do :; done' & exit 0`)
	require.NoError(t, err)
	assert.ErrorIs(t, outcome.Lost, ErrRunningOut)
	require.NotZero(t, s.killed)
	assert.True(t, s.killed.Before(s.lease.Until()))
}
