package inmemory

import (
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// JumpClock moves the clock by which keys expire, as an operator or NTP may do on a server.
func (m *Master) JumpClock(d time.Duration) {
	m.redis.DB(0) // remove expired keys now, so that they do not come back
	m.redis.FastForward(d)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.identity.since = m.identity.since.Add(-d)
	m.stepped += d
}

// tell is a miniredis hook. It refuses commands after RefuseCommands. It answers TIME after
// JumpClock, which miniredis does not know of.
func (m *Master) tell(p *server.Peer, command string, args ...string) (done bool) {
	if m.refuse(p) {
		return true
	}
	m.mu.Lock()
	switch command {
	case "MULTI":
		if !m.queueing[p] {
			p.OnDisconnect(func() { m.queued(p) })
		}
		m.queueing[p] = true
	case "EXEC", "DISCARD":
		delete(m.queueing, p)
	}
	stepped, queueing := m.stepped, m.queueing[p]
	m.mu.Unlock()
	if command != "TIME" || len(args) > 0 || stepped == 0 || queueing {
		return false
	}
	now := time.Now().Add(stepped)
	p.WriteLen(2)
	p.WriteBulk(strconv.FormatInt(now.Unix(), 10))
	p.WriteBulk(strconv.Itoa(now.Nanosecond() / 1000))
	return true
}

// queued forgets a connection on which a transaction had begun.
func (m *Master) queued(p *server.Peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.queueing, p)
}
