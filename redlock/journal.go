package redlock

import (
	"log/slog"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// journal calls the Logger and Trace on a goroutine of its own. Whoever ends locks
// at their time, or carries everybody's operations, must not wait for a log file,
// and must not die of a panic in one.
type journal struct {
	logger  *slog.Logger
	entries chan func()
	done    chan struct{}
	writing sync.WaitGroup
}

const (
	// backlog is how many entries wait for a slow reader; more are dropped. It
	// has room for a whole batch of each of a few lanes.
	backlog = 1 << 14
	// farewell is how long Close waits for a reader that blocks.
	farewell = time.Second
)

func newJournal(logger *slog.Logger) *journal {
	return &journal{logger: logger, entries: make(chan func(), backlog), done: make(chan struct{})}
}

func (j *journal) start() { j.writing.Go(j.run) }

// run calls the readers until the journal is closed. A reader that ends its goroutine, as
// a failed require of a test does, leaves the rest of the entries to a new one.
func (j *journal) run() {
	exited := true
	defer func() {
		if exited {
			j.writing.Go(j.run)
		}
	}()
	for {
		select {
		case e := <-j.entries:
			j.write(e)
		case <-j.done:
			for len(j.entries) > 0 {
				j.write(<-j.entries)
			}
			exited = false
			return
		}
	}
}

// write survives a panic of the reader: it is not ours, and nobody could catch it.
func (j *journal) write(entry func()) {
	defer func() { _ = recover() }()
	entry()
}

// post never blocks, and may be called with locks held.
func (j *journal) post(entry func()) {
	select {
	case j.entries <- entry:
	default:
	}
}

func (j *journal) warn(message string, args ...any) {
	if j.logger != nil {
		j.post(func() { j.logger.Warn("redlock: "+message, args...) })
	}
}

// close waits until everything is written, or for farewell if a reader blocks or
// is itself what called Close. A later entry goes nowhere.
func (j *journal) close(clk clock.Clock) {
	close(j.done)
	written := make(chan struct{})
	go func() {
		j.writing.Wait()
		close(written)
	}()
	timer := clk.NewTimer(farewell)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C():
	}
}
