package redlocktest

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LoseMessages makes each of the next n messages that the server publishes, on whatever
// channels, to whatever subscribers and also from scripts, get lost on its way: PUBLISH
// counts its receiver, and the connection lives on. Less than 0 is all of them, until
// the next call; 0 calls off what is outstanding. A message of 4 kB or more is not lost.
func (m *Master) LoseMessages(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.loseMessages = n
}

// DelayMessages makes what the server publishes from now on arrive later by d, on top
// of what [Master.Delay] adds to all that it sends; 0 for none. Order is kept, so
// what it sends to a subscriber behind a message waits for that. Messages that are
// under way keep the delay they had, and one of 4 kB or more has none.
func (m *Master) DelayMessages(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.message = d
}

// BreakSubscriptions cuts every connection that is subscribed to something, as CLIENT
// KILL TYPE PUBSUB does, and with it what is under way on it; the others live on. When
// it returns, PUBLISH counts none of them. It must not be called from a miniredis hook.
func (m *Master) BreakSubscriptions() {
	m.mu.Lock()
	links := subscribed(m.links)
	m.mu.Unlock()
	for _, l := range links {
		l.sever()
		<-l.done
	}
}

// BreakSubscriptions cuts the path's connections that are subscribed to something, as
// [Path.Break] does, and leaves the others.
func (p *Path) BreakSubscriptions() {
	p.mu.Lock()
	links := subscribed(p.links)
	p.mu.Unlock()
	for _, l := range links {
		l.cut()
	}
}

// subscribed lists those of the links that are, oldest first, so that what is in
// virtual time can be repeated.
func subscribed(links map[*link]struct{}) (list []*link) {
	for l := range links {
		if l.exchanges.subscriptions.Load() > 0 {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *link) int { return a.number - b.number })
	return list
}

// RefuseSubscriptions answers SUBSCRIBE and PSUBSCRIBE from now on with an error, given
// as on the wire without the dash: "NOPERM this user has no permissions to run the
// 'subscribe' command" as a server does that does not permit it, "ERR unknown command
// 'subscribe'" as a proxy does that has none. "" lifts it. Subscriptions live on.
//
// To a miniredis hook, such a command is a GETRANGE.
func (m *Master) RefuseSubscriptions(err string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.subscribing = err
}

// losesMessage decides about a message that is to be sent.
func (m *Master) losesMessage() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.loseMessages > 0 {
		m.faults.loseMessages--
		return true
	}
	return m.faults.loseMessages < 0
}

// messageDue is replyDue for a message.
func (m *Master) messageDue(path time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return due(m.faults.reply + m.faults.message + path)
}

// isMessage reports whether a reply that is nobody's was published.
func isMessage(reply []byte) bool {
	kind := messageKind(reply)
	return kind == "message" || kind == "pmessage"
}

// subscribes reports whether a command begins subscriptions.
func subscribes(command []string) bool {
	return command[0] == "SUBSCRIBE" || command[0] == "PSUBSCRIBE"
}

// subscriptions is how many there are on a connection by a reply that tells, which
// confirms that one has begun or ended.
func subscriptions(reply []byte) (n int32, told bool) {
	if kind := messageKind(reply); !strings.HasSuffix(kind, "subscribe") {
		return 0, false
	}
	last := reply[bytes.LastIndexByte(reply[:len(reply)-len("\r\n")], '\n')+1:]
	count, err := strconv.ParseInt(strings.TrimSuffix(string(last[1:]), "\r\n"), 10, 32)
	return int32(count), last[0] == ':' && err == nil
}
