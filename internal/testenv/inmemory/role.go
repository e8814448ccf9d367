package inmemory

import "strings"

// Demote makes the master a replica of some other server, as REPLICAOF does.
func (m *Master) Demote() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.identity.replica {
		return
	}
	m.identity.replica = true
	m.identity.replID, m.identity.replID2, m.identity.secondOffset = newID(), noID, -1
}

// Promote makes a demoted master a master again, as REPLICAOF NO ONE does.
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
