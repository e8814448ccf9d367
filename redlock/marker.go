package redlock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A marker is an identity record: a key on each node that says which server is there, and
// since when. It tells a client what INFO does not: that another server was there before.
// It is replicated like any key, so a promoted replica has the record of the server
// before it.
//
// A client that sees a takeover dates the record: this server, since that time by the
// server's own clock. A later client heeds the date, whether or not the server was ever a
// replica. A client that meets a server for the first time, and finds a sign of another
// one before it and no date, takes the takeover to be now, and dates the record. Without
// such a sign the record is written without a date, or a first deployment would stall.
// Behind a Cluster there is no record: each shard would need one in a slot of its own.
//
// A date is never earlier than the takeover that it is about. A later one costs time
// alone, so it does not matter which client's record of a takeover stays. A date from an
// earlier stay of the same server is too early; it is void for a client that has seen
// another server there since, and that client writes the record anew until it finds it
// right.

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

// names reports whether the record is about this server. A master that was never a replica
// keeps its record when its replication id changes.
func (s *sighting) names() bool { return s.mark.id != "" && !s.follows(s.mark.identity()) }

// stranger reports whether the record is about another server, which was there before.
func (s *sighting) stranger() bool { return s.mark.id != "" && s.follows(s.mark.identity()) }

// dated returns for how long the server has been there at least, by its own record.
func (s *sighting) dated() (since time.Duration, ok bool) {
	if !s.names() || s.mark.since == 0 {
		return 0, false
	}
	return max(s.now.Sub(time.UnixMilli(s.mark.since)), 0), true
}

// heed takes the date of the server's own record, if that is news. was is the record at
// the last look at the address, and heard the time when that look's answer was read. mu
// is held.
//
// A server that has replaced another one did so after that one answered, so a date before
// that answer is about an earlier stay, and void. To be on the safe side the answer counts
// as late as it was read (heard). The date counts as early as it can have been: from when
// the question was sent, and as if the server's clock ran slow by the drift. What is then
// believed of the date must not be too early, and counts from the reading (s.heard).
//
// A date is news once: later looks would move it by the jitter of the network.
func (s *server) heed(was marker, replaced bool, sent, heard time.Time) {
	since, ok := s.dated()
	if !ok || !replaced && s.mark == was {
		return
	}
	date := s.heard.Add(-since)
	earliest := sent.Add(-since).Add(-s.guard.drift.Of(since))
	switch {
	case replaced && earliest.After(heard):
		s.changed = date // a witness saw the takeover before us
	case !replaced && !date.Before(s.changed):
		s.changed = date // a witness saw a takeover that we know nothing of
	default:
		s.void = s.mark
	}
}

// record returns the identity record that is to be written; "" if the one that is there is
// right. A client that knows of a takeover dates the record until it reads a date there,
// as its first record may be lost, or come too late. mu is held.
func (s *server) record(sent time.Time) string {
	_, dated := s.dated()
	m := marker{id: s.identity.String()}
	switch {
	case s.now.IsZero() || s.role != "master": // there is none, or it cannot be written
		return ""
	case dated && s.mark != s.void:
		return ""
	case !s.changed.IsZero():
		m.since = s.date(sent)
	case s.names():
		return ""
	case s.stranger():
		m.since = stamp(s.now)
	}
	return m.String()
}

// date returns the time of the takeover by the server's clock, at the latest: the question
// was sent before the server looked at its clock, and that may run slow.
func (s *server) date(sent time.Time) int64 {
	ago := max(sent.Sub(s.changed), 0)
	return stamp(s.now.Add(-max(ago-s.guard.drift.Of(ago), 0)))
}

// stamp is a time as records have it. It rounds up: a date must not be too early.
func stamp(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }
