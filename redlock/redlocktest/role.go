package redlocktest

import "strings"

// Demote makes the master a replica of some other server, as REPLICAOF does: its
// connections live on, INFO says role:slave and gives the other's master_replid,
// and what writes is refused with READONLY. Reads are answered. A script runs up to
// the first command in it that miniredis does not mark as reading (TIME is one such),
// and ends with READONLY there. Demoting a replica does nothing. A restart makes it
// a master again: the role is not written down.
//
// The keys stay as they are and expire as they would have. A real replica takes
// over the other's; a test that needs those puts them in by [Master.Miniredis].
//
// A write that had reached the server before is executed, as is what had been queued
// with MULTI by its EXEC. miniredis hooks are not asked about a write that is
// refused: they see a GETRANGE in its place, and EVAL_RO for EVAL.
func (m *Master) Demote() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.identity.replica {
		return
	}
	m.identity.replica = true
	m.identity.replID, m.identity.replID2, m.identity.secondOffset = newID(), noID, -1
}

// Promote makes a demoted master a master again, as REPLICAOF NO ONE does: with the
// keys it has, on the same connections, and by the same run_id and uptime. Its
// master_replid is new, and master_replid2 is the one it had as a replica. Promoting
// a master does nothing.
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

// unmarked are the commands that miniredis does not mark as reading and that a
// replica answers all the same.
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
