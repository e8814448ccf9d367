package redlock

import "time"

// NodeStatus is what is known of one of the N masters, for operators.
type NodeStatus struct {
	Addr string // as in errors
	// Servers are those that were heard of behind the node: one, or none yet; behind a
	// Cluster one for each shard that was in use. A server that left the Cluster stays in
	// the list for Config.RestartGuard or longer, and goes when a new one comes.
	Servers []ServerStatus
}

// ServerStatus is what a server said of itself when it was last asked, on a new
// connection, and whether its votes count. Without Config.RestartGuard nothing but
// its RunID and Started is asked for.
type ServerStatus struct {
	Addr    string
	RunID   string    // of the server's process
	Role    string    // "master" or "slave"
	Started time.Time // about when; by the Redlock's clock
	Heard   time.Time // when it said so; by the Redlock's clock

	// Quarantine is until when its votes do not count because it may have forgotten
	// locks; zero, or past, if they do.
	Quarantine time.Time
	// Err is why its votes would not count now, in words; nil if they would. For a
	// server that is another node's too it matches ErrDuplicateNode.
	Err error
}

// Nodes tells of each node which server is behind it and whether its votes count, in
// the order of New. It asks nobody: what it says is from the last operation that did,
// or from Config.RestartGuard's look once a second while there are some.
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
