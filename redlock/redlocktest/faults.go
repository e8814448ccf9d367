package redlocktest

import (
	"time"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
)

// faults are what a master's link does to its traffic. The master's mutex guards them.
type faults struct {
	request, reply time.Duration
	loseRequests   int
	loseReplies    int
	message        time.Duration // in addition to reply, for published messages
	loseMessages   int           // less than 0: all
	subscribing    string        // the error that a subscription gets; empty for none
	stall          chan struct{} // closed when the stall ends; nil if there is none
}

// resume ends a stall.
func (f *faults) resume() {
	if f.stall != nil {
		close(f.stall)
		f.stall = nil
	}
}

// Stall stops the master like SIGSTOP stops a server. It still accepts connections and bytes,
// but executes nothing. The reply to a command that had reached the server before is still
// sent. Stalling a stalled master does nothing.
func (m *Master) Stall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.stall == nil {
		m.faults.stall = make(chan struct{})
	}
}

// Resume ends a stall, as SIGCONT does. Everything sent meanwhile is executed, even for
// clients that have hung up, and a key that is set then gets its full ttl.
func (m *Master) Resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.resume()
}

// Delay makes everything sent from now on arrive later: a request by the first delay and its
// reply by the second, 0 for none. Order is kept, any number of messages can be under way, and
// those already under way keep their delay. The end of a connection arrives after what was
// sent before, so a request arrives late even if its client gives up. Connecting takes no
// time.
func (m *Master) Delay(request, reply time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.request, m.faults.reply = request, reply
}

// LoseReplies makes the master execute each of the next n requests, on any connection, and cut
// the connection instead of replying. 0 cancels outstanding losses.
//
// A request is what a client sends in one go: a command or a pipeline. A connection's
// handshake (HELLO, AUTH, SELECT, CLIENT, READONLY) passes and is not counted. A client that
// retries uses up another loss.
func (m *Master) LoseReplies(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.loseReplies = max(n, 0)
}

// LoseRequests loses each of the next n requests, as counted by [Master.LoseReplies], before
// it reaches the master, and cuts its connection. 0 cancels outstanding losses. If both kinds
// are outstanding, requests are lost first.
func (m *Master) LoseRequests(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.loseRequests = max(n, 0)
}

// fate decides what happens to a request that has just been sent.
func (m *Master) fate(request []byte) faultlink.Fate {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch f := &m.faults; {
	case f.loseRequests+f.loseReplies == 0 || isHandshake(request):
		return faultlink.Pass
	case f.loseRequests > 0:
		f.loseRequests--
		return faultlink.LoseRequest
	}
	m.faults.loseReplies--
	return faultlink.LoseReply
}

// delay returns how long what is sent now takes, in addition to its path.
func (m *Master) delay(d faultlink.Direction) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d == faultlink.ToServer {
		return m.faults.request
	}
	return m.faults.reply
}
