// Package asynclog calls a program's logger and its other callbacks on goroutines of their own.
package asynclog

import (
	"context"
	"log/slog"

	"github.com/quorumlock/redlock/clock"
)

// backlog is how many calls may wait for a slow callback; Log drops further ones. It has room for a
// whole batch of each of a few lanes.
const backlog = 1 << 14

// Log queues calls and makes them one at a time, in order.
type Log struct {
	logger *slog.Logger // nil: Warn and Info do nothing
	calls  *Queue[func()]
}

// New makes a Log.
func New(logger *slog.Logger) *Log {
	return &Log{logger: logger, calls: NewQueue(backlog, func(call *func()) { (*call)() }, func(any) {})}
}

// Call queues a call, or drops it if too many are waiting. It never blocks, and may be used with
// locks held. After Close it does nothing.
func (l *Log) Call(call func()) { l.calls.Offer(call) }

// Warn queues a warning for the logger, if there is one. It never blocks. event is the name of the
// record for machines, message for people.
func (l *Log) Warn(event, message string, args ...any) { l.log(slog.LevelWarn, event, message, args) }

// Info is Warn for what needs no attention.
func (l *Log) Info(event, message string, args ...any) { l.log(slog.LevelInfo, event, message, args) }

func (l *Log) log(level slog.Level, event, message string, args []any) {
	if l.logger != nil {
		l.Call(func() {
			l.logger.Log(context.Background(), level, "redlock: "+message, append([]any{"event", event}, args...)...)
		})
	}
}

// Close makes the queued calls; see Queue.Close.
func (l *Log) Close(clk clock.Clock) { l.calls.Close(clk) }
