package redlocktest

import (
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// JumpClock steps the clock by which keys expire, as an operator or NTP steps that
// of a server: forward by d, and every key has d less to live, or none; back, with
// a negative d, and it has as much more. Keys without a ttl stay as they are. What
// clients set later is not concerned. The uptime in INFO, which Redis reckons by its
// wall clock, steps along, and so does TIME, also in scripts; but not in a transaction,
// nor once a miniredis hook of the caller's has been set.
func (m *Master) JumpClock(d time.Duration) {
	m.redis.DB(0) // takes away what has expired by now, which must not come back
	m.redis.FastForward(d)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.identity.since = m.identity.since.Add(-d)
	m.stepped += d
}

// tell answers TIME where the clock was stepped, of which miniredis knows nothing. It is
// a miniredis hook.
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
