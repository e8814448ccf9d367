// Package asynclog calls a program's logger and its other callbacks on a goroutine of their
// own. The goroutines that end locks on time, or carry the operations of all locks, must not
// wait for a log file, nor die of a panic in a callback.
package asynclog

import (
	"log/slog"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

const (
	// backlog is how many calls may wait for a slow callback; Log drops further ones. It has
	// room for a whole batch of each of a few lanes.
	backlog = 1 << 14
	// patience is how long Close waits for a callback that blocks.
	patience = time.Second
)

// Log queues calls and makes them one at a time, in order.
type Log struct {
	logger  *slog.Logger // nil: Warn does nothing
	calls   chan func()
	done    chan struct{}
	running sync.WaitGroup
}

// New makes a Log. It makes no call before Start.
func New(logger *slog.Logger) *Log {
	return &Log{logger: logger, calls: make(chan func(), backlog), done: make(chan struct{})}
}

// Start starts the goroutine that makes the calls. Close ends it.
func (l *Log) Start() { l.running.Go(l.run) }

// run makes calls until Close. If a callback ends its goroutine, as a failed require in a test
// does, a new goroutine makes the remaining calls.
func (l *Log) run() {
	exited := true
	defer func() {
		if exited {
			l.running.Go(l.run)
		}
	}()
	for {
		select {
		case call := <-l.calls:
			survive(call)
		case <-l.done:
			for len(l.calls) > 0 {
				survive(<-l.calls)
			}
			exited = false
			return
		}
	}
}

// survive makes a call and drops its panic, from which the program could not recover on this
// goroutine.
func survive(call func()) {
	defer func() { _ = recover() }()
	call()
}

// Call queues a call, or drops it if too many are waiting. It never blocks, and may be used
// with locks held.
func (l *Log) Call(call func()) {
	select {
	case l.calls <- call:
	default:
	}
}

// Warn queues a warning for the logger, if there is one. It never blocks.
func (l *Log) Warn(message string, args ...any) {
	if l.logger != nil {
		l.Call(func() { l.logger.Warn("redlock: "+message, args...) })
	}
}

// Close makes the queued calls and ends the goroutine. It waits for at most a second, as a
// callback may block, or may itself have called Close. Later calls are dropped.
func (l *Log) Close(clk clock.Clock) {
	close(l.done)
	ended := make(chan struct{})
	go func() {
		l.running.Wait()
		close(ended)
	}()
	timer := clk.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C():
	}
}
