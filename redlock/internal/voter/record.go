package voter

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// record is an identity record: a key on each node, protocol.RecordKey, that names the server
// there, and since when it has been there. It shows a client what INFO does not: that another
// server was there before. It is replicated like any key, so a promoted replica holds the
// record of the server before it.
//
// A client that observes a takeover dates the record: this server, since that time by the
// server's own clock. A later client heeds the date, whether or not the server was ever a
// replica. A client that meets a server for the first time, and finds a sign of an earlier
// server but no date, takes the takeover to be now, and dates the record. Without such a sign
// it writes the record without a date, or a first deployment would stall. A Cluster has no
// record: each shard would need one in a slot of its own.
//
// A date is never earlier than the takeover that it is about. A later date only costs time, so
// it does not matter which client's record of a takeover stays. But if the same server comes
// back, the date from its earlier stay is too early. A client that has seen another server
// there since then ignores such a date, and writes the record again until it reads a right one.
type record struct {
	id    string // Identity.String of the server
	since int64  // milliseconds by the server's clock; 0: unknown
}

func (r record) identity() Identity {
	run, replication, _ := strings.Cut(r.id, ":")
	return Identity{run, replication}
}

func (r record) String() string { return fmt.Sprintf("%s %d", r.id, r.since) }

// parseRecord reads a record's text. It returns the zero record for any other text.
func parseRecord(text string) (r record) {
	id, since, _ := strings.Cut(text, " ")
	if n, err := strconv.ParseInt(since, 10, 64); err == nil && n >= 0 {
		r = record{id, n}
	}
	return r
}

// Dated reports whether a record's text holds a date.
func Dated(text string) bool { return parseRecord(text).since != 0 }

// own reports whether the record is about this server. A master that was never a replica
// keeps its record when its replication id changes.
func (i *Info) own() bool { return i.record.id != "" && !i.Follows(i.record.identity()) }

// others reports whether the record is about another server, which was there before.
func (i *Info) others() bool { return i.record.id != "" && i.Follows(i.record.identity()) }

// dated returns the least time for which the server has been there, by its own record; false if
// it has none with a date.
func (i *Info) dated() (since time.Duration, ok bool) {
	if !i.own() || i.record.since == 0 {
		return 0, false
	}
	return max(i.now.Sub(time.UnixMilli(i.record.since)), 0), true
}

// heed applies the date of the server's own record, if it is new. was is the record that the
// last reply from the address held, and heard the time when that reply was read. The caller
// holds mu.
//
// A server that has replaced another one did so after the last answer of that one. A date
// before that answer is from an earlier stay, and void. To be on the safe side, the answer
// counts as late as it was read (heard), and the date as early as it can have been: from when
// the question was sent, and as if the server's clock ran slow by the drift. A date that is
// applied must not be too early either, so it counts from when the reply was read (s.heard).
//
// A date is applied once: applying it at later replies would move it by the jitter of the
// network.
func (s *Server) heed(was record, replaced bool, sent, heard time.Time) {
	since, ok := s.dated()
	if !ok || !replaced && s.record == was {
		return
	}
	date := s.heard.Add(-since)
	earliest := sent.Add(-since).Add(-s.guard.drift.Of(since))
	switch {
	case replaced && earliest.After(heard):
		s.changed = date // another client saw the takeover before this one
	case !replaced && !date.Before(s.changed):
		s.changed = date // another client saw a takeover that this one missed
	default:
		s.void = s.record
	}
}

// wanted returns the identity record to write, "" if the node's record is right. A client
// that knows of a takeover writes the date until it reads one, as its first record may be
// lost, or come too late. The caller holds mu.
func (s *Server) wanted(sent time.Time) string {
	_, dated := s.dated()
	r := record{id: s.Identity.String()}
	switch {
	case s.now.IsZero() || s.role != "master": // there is none, or it cannot be written
		return ""
	case dated && s.record != s.void:
		return ""
	case !s.changed.IsZero():
		r.since = s.date(sent)
	case s.own():
		return ""
	case s.others():
		r.since = stamp(s.now)
	}
	return r.String()
}

// date returns the time of the takeover by the server's clock, or later: the question was
// sent before the server read its clock, and that clock may run slow.
func (s *Server) date(sent time.Time) int64 {
	ago := max(sent.Sub(s.changed), 0)
	return stamp(s.now.Add(-max(ago-s.guard.drift.Of(ago), 0)))
}

// stamp converts a time to a record's form. It rounds up, as a date must not be too early.
func stamp(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }
