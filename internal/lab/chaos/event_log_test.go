//go:build linux

package chaos

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// An eventLog is where a client records what it believes. A line is in the pipe when add
// returns, so it survives the client.
type eventLog struct {
	mu sync.Mutex
	to io.Writer
}

// longestErr keeps a line shorter than PIPE_BUF, so that a kill cannot cut it in two.
const longestErr = 400

// add writes an event. If that fails, it panics, because a client without records is of no
// use.
func (j *eventLog) add(e history.Event) {
	e.Err = e.Err[:min(len(e.Err), longestErr)]
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.to.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}
