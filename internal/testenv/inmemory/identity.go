package inmemory

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"
)

// InitialUptime is the uptime of a new master, and of one that has taken over by
// [Master.FailOver]. A client that does not trust servers that started a short time ago trusts
// these at once.
const InitialUptime = 24 * time.Hour

// identity is the part of INFO that identifies a server. The master's mutex guards it.
type identity struct {
	since        time.Time // when the server started, by its own clock
	runID        string    // identifies the process
	replID       string    // identifies the history of writes
	replID2      string    // identifies the history that this one continues
	secondOffset int       // where this history left the previous one; -1 if there is none
	replica      bool
}

// noID is the value of a missing id in INFO.
var noID = strings.Repeat("0", 40)

// newIdentity returns the identity of a server that has been up for uptime. Ids are random, so
// no two servers of a process share one, and of equal length, so runs with the same seed take
// the same course.
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

// continues returns the identity of a promoted replica, which continues the history replID.
func (id identity) continues(replID string) identity {
	id.replID2, id.secondOffset = replID, 1
	return id
}

func (m *Master) self() identity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.identity
}
