package redlocktest

import "strings"

// Demote makes the master a replica of some other server, as REPLICAOF does. Connections stay
// open. INFO reports role:slave and the other server's master_replid. Reads are answered;
// writes get READONLY. A script ends with READONLY at its first command that miniredis does
// not mark as reading (TIME is one such). Demoting a replica does nothing. A restart makes it
// a master again, because the role is not saved.
//
// The keys stay as they are and expire in time. A real replica would take over the other
// server's keys; a test that needs those can add them with [Master.Miniredis].
//
// A write that had reached the server before is executed, and so is a transaction already
// queued with MULTI, by its EXEC. miniredis hooks see a GETRANGE in place of a refused write,
// and EVAL_RO for EVAL.
func (m *Master) Demote() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.identity.replica {
		return
	}
	m.identity.replica = true
	m.identity.replID, m.identity.replID2, m.identity.secondOffset = newID(), noID, -1
}

// Promote makes a demoted master a master again, as REPLICAOF NO ONE does. It keeps its keys,
// connections, run_id and uptime. Its master_replid is new, and its master_replid2 is its id
// as a replica. Promoting a master does nothing.
func (m *Master) Promote() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.identity.replica {
		return
	}
	next := m.identity.continues(m.identity.replID)
	next.replica, next.replID = false, newID()
	m.identity = next
}

// unmarked holds commands that a replica answers although miniredis does not mark them as
// reading.
var unmarked = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`
		AUTH CLIENT CLUSTER COMMAND DISCARD ECHO EXEC HELLO INFO MEMORY MULTI OBJECT
		PING PSUBSCRIBE PUBLISH PUBSUB PUNSUBSCRIBE QUIT SCRIPT SELECT SUBSCRIBE TIME
		UNSUBSCRIBE UNWATCH WAIT WATCH XINFO`) {
		unmarked[name] = true
	}
}

// writes reports whether a replica refuses the command.
func (m *Master) writes(name string) bool {
	return m.server.IsRegisteredCommand(name) && !m.server.IsReadOnlyCommand(name) && !unmarked[name]
}
