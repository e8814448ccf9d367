package redlock

import (
	"log/slog"
	"sync"
)

// journal writes to the Logger on a goroutine of its own: whoever ends locks at
// their time must not wait for somebody's log file.
type journal struct {
	logger  *slog.Logger
	entries chan entry
	done    chan struct{}
	writing sync.WaitGroup
}

type entry struct {
	message string
	args    []any
}

// backlog is how many entries wait for a slow Logger; more are dropped.
const backlog = 1024

func newJournal(logger *slog.Logger) *journal {
	return &journal{logger: logger, entries: make(chan entry, backlog), done: make(chan struct{})}
}

func (j *journal) start() {
	j.writing.Go(func() {
		for {
			select {
			case e := <-j.entries:
				j.write(e)
			case <-j.done:
				for len(j.entries) > 0 {
					j.write(<-j.entries)
				}
				return
			}
		}
	})
}

func (j *journal) write(e entry) { j.logger.Warn("redlock: "+e.message, e.args...) }

// warn never blocks, and may be called with locks held.
func (j *journal) warn(message string, args ...any) {
	if j.logger == nil {
		return
	}
	select {
	case j.entries <- entry{message, args}:
	default:
	}
}

// close waits until everything is written. A later warning goes nowhere.
func (j *journal) close() {
	close(j.done)
	j.writing.Wait()
}
