package redlock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A marker is a key on each node that says which server is there, and since when: what
// a client that was not there cannot know from INFO. It is replicated like any key, so
// a promoted replica has that of the server before it, and whoever meets it first finds
// another identity in it than the server's own, and writes what he has found: this
// server, since now by its own clock. Whoever comes later knows since when.
//
// No marker is no reason for a quarantine, or a first deployment would stall; it is
// then written without a time. Behind a Cluster there is none: each shard would need
// one in a slot of its own.
//
// Every time in a marker is later than the promotion it is about, whoever wrote it and
// whenever that arrived; so it does not matter whose is there in the end.

// markerName is where a node's marker is, behind Config.KeyPrefix.
const markerName = "redlock:server"

// marker is what one says.
type marker struct {
	id    string
	since int64 // milliseconds of the server's clock; 0: nobody knows
}

func (id identity) String() string { return id.run + ":" + id.replication }

func (m marker) identity() identity {
	run, replication, _ := strings.Cut(m.id, ":")
	return identity{run, replication}
}

func (m marker) String() string { return fmt.Sprintf("%s %d", m.id, m.since) }

// readMarker reads a marker's text; what is none says nothing.
func readMarker(text string) (m marker) {
	id, since, _ := strings.Cut(text, " ")
	if n, err := strconv.ParseInt(since, 10, 64); err == nil && n >= 0 {
		m = marker{id, n}
	}
	return m
}

// dated is for how long the server has been there at least, by a marker that is its own
// and has a time.
func (s *sighting) dated() (since time.Duration, ok bool) {
	if s.mark.id != s.identity.String() || s.mark.since == 0 {
		return 0, false
	}
	return max(s.now.Sub(time.UnixMilli(s.mark.since)), 0), true
}

// stranger reports that another server was there before.
func (s *sighting) stranger() bool { return s.mark.id != "" && s.follows(s.mark.identity()) }

// remark is the marker that should be there instead; empty if it is right. new tells
// that the server was somebody else when we last looked.
func (s *sighting) remark(new bool) string {
	m := marker{id: s.identity.String()}
	switch {
	case s.now.IsZero():
		return ""
	case s.mark.id == m.id && !(new && s.mark.since == 0):
		return ""
	case new || s.stranger():
		m.since = s.now.UnixMilli()
	case s.mark.id != "":
		m.since = s.mark.since // the same server by another name
	}
	return m.String()
}
