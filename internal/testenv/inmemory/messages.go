package inmemory

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
)

// LoseMessages loses each of the next n messages that the server publishes, on any channel, to
// any subscriber, and from scripts too.
func (m *Master) LoseMessages(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.loseMessages = n
}

// DelayMessages makes messages that the server publishes from now on arrive later by d, in
// addition to the delay of [Master.Delay]; 0 ends that.
func (m *Master) DelayMessages(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.message = d
}

// BreakSubscriptions cuts every connection with a subscription, as CLIENT KILL TYPE PUBSUB
// does, with everything under way on it.
func (m *Master) BreakSubscriptions() {
	for _, c := range subscribed(&m.conns) {
		c.Sever()
		<-c.Done()
	}
}

// BreakSubscriptions cuts the path's connections with a subscription, like [Path.Break], and
// no others.
func (p *Path) BreakSubscriptions() {
	for _, c := range subscribed(&p.Conns) {
		c.Cut()
	}
}

// subscribed returns the connections with a subscription, oldest first, so that runs in virtual
// time can be repeated.
func subscribed(conns *faultlink.Set) []*faultlink.Conn {
	return slices.DeleteFunc(conns.All(), func(c *faultlink.Conn) bool {
		return c.Owner.(*serverEnd).exchanges.subscriptions.Load() == 0
	})
}

// RefuseSubscriptions answers later SUBSCRIBE and PSUBSCRIBE commands with an error, given as
// on the wire without the dash; "" ends that.
func (m *Master) RefuseSubscriptions(err string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.subscribing = err
}

// losesMessage reports whether to lose the message that is about to be sent, and counts it.
func (m *Master) losesMessage() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.loseMessages > 0 {
		m.faults.loseMessages--
		return true
	}
	return m.faults.loseMessages < 0
}

// messageDelay returns how much later than a reply a message arrives that is sent now.
func (m *Master) messageDelay() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults.message
}

// isMessage reports whether a reply that answers no command was published.
func isMessage(reply []byte) bool {
	kind := messageKind(reply)
	return kind == "message" || kind == "pmessage"
}

// subscribes reports whether a command begins subscriptions.
func subscribes(command []string) bool {
	return command[0] == "SUBSCRIBE" || command[0] == "PSUBSCRIBE"
}

// subscriptions returns the number of a connection's subscriptions if the reply confirms the
// beginning or end of one.
func subscriptions(reply []byte) (n int32, told bool) {
	if kind := messageKind(reply); !strings.HasSuffix(kind, "subscribe") {
		return 0, false
	}
	last := reply[bytes.LastIndexByte(reply[:len(reply)-len("\r\n")], '\n')+1:]
	count, err := strconv.ParseInt(strings.TrimSuffix(string(last[1:]), "\r\n"), 10, 32)
	return int32(count), last[0] == ':' && err == nil
}
