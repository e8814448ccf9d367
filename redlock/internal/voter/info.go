package voter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/serverinfo"
)

// Identity distinguishes servers. A server keeps its run id until it restarts, and gets a new
// replication id when it is promoted.
type Identity struct{ Run, Replication string }

// String is the form in which an identity record holds an identity.
func (id Identity) String() string { return id.Run + ":" + id.Replication }

// Info is what a server reports about itself. Its Read methods fill it from the server's
// replies.
type Info struct {
	Identity
	role     string        // "master" or "slave"
	uptime   time.Duration // in whole seconds, by the server's wall clock
	promoted bool          // the server has been a replica, or may have been

	record record    // the node's identity record
	now    time.Time // by the server's clock; zero if it was not asked
}

// Follows reports whether the server has taken the place of the one with that identity, or was
// a replica in between. Another replication id alone does not show that: a master also gets a
// new one when its first replica connects, for a backup perhaps, and when its backlog is freed
// an hour after the last replica left. Those changes leave no second replication id.
func (i *Info) Follows(before Identity) bool {
	return before.Run != i.Run || before.Replication != i.Replication && i.promoted
}

// ErrNoIdentity reports a reply that does not identify its server.
var ErrNoIdentity = errors.New("answers INFO without saying which server it is")

// ReadServer reads the section "server" of INFO.
func (i *Info) ReadServer(text string) error {
	f := serverinfo.Fields(text)
	seconds, err := strconv.ParseInt(f["uptime_in_seconds"], 10, 32)
	if f["run_id"] == "" || err != nil {
		return ErrNoIdentity
	}
	i.Run, i.uptime = f["run_id"], time.Duration(seconds)*time.Second
	return nil
}

// ReadReplication reads the section "replication" of INFO.
func (i *Info) ReadReplication(text string) error {
	f := serverinfo.Fields(text)
	if f["role"] == "" {
		return ErrNoIdentity
	}
	i.role, i.Replication = f["role"], f["master_replid"]
	i.promoted = strings.Trim(f["master_replid2"], "0") != "" || f["master_replid2"] == ""
	return nil
}

// ReadRecord reads the node's identity record, "" if it has none. A text that is no record
// counts as none.
func (i *Info) ReadRecord(text string) error {
	i.record = parseRecord(text)
	return nil
}

// ReadTime reads the reply to TIME: seconds and microseconds.
func (i *Info) ReadTime(reply any) error {
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return ErrNoIdentity
	}
	seconds, err1 := strconv.ParseInt(fmt.Sprint(parts[0]), 10, 64)
	micros, err2 := strconv.ParseInt(fmt.Sprint(parts[1]), 10, 64)
	if err1 != nil || err2 != nil {
		return ErrNoIdentity
	}
	i.now = time.Unix(seconds, micros*1000)
	return nil
}
