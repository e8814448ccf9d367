//go:build linux

package chaos

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/quorumlock/redlock/internal/history"
)

// A journal is where a client writes what it believes. A line is in the pipe when
// add returns, so it survives whatever becomes of the client.
type journal struct {
	mu sync.Mutex
	to io.Writer
}

// longestErr keeps a line below PIPE_BUF: a kill must not cut it in two.
const longestErr = 400

// add writes an event. A client that cannot be heard is of no use; it ends.
func (j *journal) add(e history.Event) {
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
