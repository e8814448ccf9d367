package redlock

import "time"

// NodeStatus is what is known of one of the N masters, for operators.
type NodeStatus struct {
	Addr string // the node's address, as in errors
	// Servers are the servers that were seen behind the node: one, or none yet. Behind a Cluster
	// there is one for each shard that was in use. A server that left the Cluster stays in the list
	// for Config.RestartGuard or longer, until the Redlock connects to a new one.
	Servers []ServerStatus
}

// ServerStatus is what a server reported about itself when it was last asked, and whether its votes
// count. A server is asked on each new connection. Without Config.RestartGuard it is asked for
// nothing but its RunID and Started.
type ServerStatus struct {
	Addr    string
	RunID   string    // of the server's process
	Role    string    // "master" or "slave"
	Started time.Time // approximately; by the Redlock's clock
	Heard   time.Time // when it reported this; by the Redlock's clock

	// Quarantine is until when its votes do not count because it may have forgotten locks. It is
	// zero or past if the server is not in quarantine.
	Quarantine time.Time
	// Err is why its votes would not count now; nil if they would. It matches ErrDuplicateNode for
	// a server that is another node too.
	Err error
}

// Nodes returns, in the order of New, which servers are behind each node and whether their votes
// count. It asks no node. What it returns was learned by the last operation that made a connection
// or, with Config.RestartGuard, by the check that operations make once a second.
func (r *Redlock) Nodes() []NodeStatus {
	if r == nil || r.closing == nil {
		return nil
	}
	now := r.cfg.Clock.Now()
	all := make([]NodeStatus, len(r.nodes))
	for i, n := range r.nodes {
		all[i].Addr = n.Addr
		for _, s := range r.guard.Status(i, now) {
			all[i].Servers = append(all[i].Servers, ServerStatus(s))
		}
	}
	return all
}
