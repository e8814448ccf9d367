//go:build unix

package leash

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Under nohup(1) the commands would ignore SIGHUP as well.
	signal.Notify(make(chan os.Signal, 1), append(Endings(), Messages()...)...)
	goleak.VerifyTestMain(m)
}

// lease is a Lease that a test renews or takes away.
type lease struct {
	mu    sync.Mutex
	until time.Time
	ctx   context.Context
	lose  context.CancelCauseFunc
}

func newLease(d time.Duration) *lease {
	l := &lease{until: time.Now().Add(d)}
	l.ctx, l.lose = context.WithCancelCause(context.Background())
	return l
}

func (l *lease) Context() context.Context { return l.ctx }

func (l *lease) Until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

func (l *lease) move(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
}

var errTaken = errors.New("taken away")

// session is one run of a shell line that talks to the test through a named pipe, $F.
type session struct {
	*testing.T
	lease   *lease
	grace   time.Duration
	signals chan os.Signal
	pipe    string
	heard   chan string // lines that the command writes to $F
	on      func(Event) // called for each event
	events  []Event
	killed  time.Time
}

func newSession(t *testing.T, d time.Duration) *session {
	s := &session{
		T: t, lease: newLease(d), grace: d / 2, signals: make(chan os.Signal, 1),
		pipe: filepath.Join(t.TempDir(), "pipe"), heard: make(chan string, 64), on: func(Event) {},
	}
	t.Cleanup(func() { s.lease.lose(nil) })
	require.NoError(t, syscall.Mkfifo(s.pipe, 0o600))
	// Keep the pipe open for writing too, so that it outlives each writer.
	f, err := os.OpenFile(s.pipe, os.O_RDWR, 0)
	require.NoError(t, err)
	read := make(chan struct{})
	t.Cleanup(func() {
		_, _ = f.WriteString("\n")
		<-read
		_ = f.Close()
	})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			text := string(buf[:n])
			if err != nil || strings.HasPrefix(text, "\n") {
				return
			}
			for line := range strings.Lines(text) {
				s.heard <- strings.TrimSpace(line)
			}
		}
	}()
	return s
}

func (s *session) run(line string) (Outcome, error) {
	return s.exec("/bin/sh", "sh", "-c", line)
}

func (s *session) exec(path string, args ...string) (Outcome, error) {
	return Run(Command{
		Path: path, Args: args, Env: append(os.Environ(), "F="+s.pipe),
		Grace: s.grace, Margin: 150 * time.Millisecond,
	}, s.lease, s.signals, func(e Event) {
		s.events = append(s.events, e)
		if e.What == Killed {
			s.killed = time.Now()
		}
		s.on(e)
	})
}

func (s *session) whats() (all []What) {
	for _, e := range s.events {
		if e.What != Hurried { // that needs a right that not every user has
			all = append(all, e.What)
		}
	}
	return all
}

const long = time.Minute
