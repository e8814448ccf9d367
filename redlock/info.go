package redlock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// identity is which server one is, and whose replica it was: a server keeps its run id
// until it restarts, and gets a new replication id when it is promoted.
type identity struct{ run, replication string }

// sighting is what a server says of itself.
type sighting struct {
	identity
	role     string        // "master" or "slave"
	uptime   time.Duration // in whole seconds, by the server's wall clock
	promoted bool          // it has been a replica, or may have

	mark marker    // the node's
	now  time.Time // by the server's clock; zero: nobody asked
}

// follows reports whether the server has taken another's place, or its own after it was a
// replica. A master gets a new replication id also when its first replica comes, for a
// backup perhaps, and when its backlog is freed an hour after the last one left; those
// leave no second one.
func (s *sighting) follows(before identity) bool {
	return before.run != s.run || before.replication != s.replication && s.promoted
}

var errNoIdentity = errors.New("answers INFO without saying which server it is")

// readServer and readReplication take what they need out of a section.
func (s *sighting) readServer(text string) error {
	f := fields(text)
	seconds, err := strconv.ParseInt(f["uptime_in_seconds"], 10, 32)
	if f["run_id"] == "" || err != nil {
		return errNoIdentity
	}
	s.run, s.uptime = f["run_id"], time.Duration(seconds)*time.Second
	return nil
}

func (s *sighting) readReplication(text string) error {
	f := fields(text)
	if f["role"] == "" {
		return errNoIdentity
	}
	s.role, s.replication = f["role"], f["master_replid"]
	s.promoted = strings.Trim(f["master_replid2"], "0") != "" || f["master_replid2"] == ""
	return nil
}

// fields splits the lines of a section at their colons.
func fields(text string) map[string]string {
	f := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			f[name] = value
		}
	}
	return f
}

// readMark takes the marker.
func (s *sighting) readMark(text string) error {
	s.mark = readMarker(text)
	return nil
}

// readTime takes the answer to TIME: seconds and microseconds.
func (s *sighting) readTime(answer any) error {
	parts, _ := answer.([]any)
	if len(parts) != 2 {
		return errNoIdentity
	}
	seconds, err1 := strconv.ParseInt(fmt.Sprint(parts[0]), 10, 64)
	micros, err2 := strconv.ParseInt(fmt.Sprint(parts[1]), 10, 64)
	if err1 != nil || err2 != nil {
		return errNoIdentity
	}
	s.now = time.Unix(seconds, micros*1000)
	return nil
}
