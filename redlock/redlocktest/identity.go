package redlocktest

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"
)

// InitialUptime is how long a new master, and one that has taken over by
// [Master.FailOver], says it has been up. A client that does not trust servers
// which started a short time ago trusts these at once.
const InitialUptime = 24 * time.Hour

// identity is what a server says of itself in INFO. The master's mutex guards it.
type identity struct {
	since        time.Time // when the server started, by its own clock
	runID        string    // of the process
	replID       string    // of the history of writes
	replID2      string    // of the history that this one goes on from
	secondOffset int       // where in that history; -1: nowhere
	replica      bool
}

// noID stands in INFO where there is no id.
var noID = strings.Repeat("0", 40)

// newIdentity returns that of a server which has been up for so long. Ids are
// random, so that no two servers of a process share one, and all are of one
// length: a run with the same seed takes the same course.
func newIdentity(uptime time.Duration) identity {
	return identity{
		since:        time.Now().Add(-uptime),
		runID:        newID(),
		replID:       newID(),
		replID2:      noID,
		secondOffset: -1,
	}
}

func newID() string {
	var b [20]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// continues returns who goes on from the history replID, as a replica does that is
// promoted.
func (id identity) continues(replID string) identity {
	id.replID2, id.secondOffset = replID, 1
	return id
}

func (m *Master) self() identity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.identity
}
