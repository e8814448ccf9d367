package inmemory

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

// Stall stops the master like SIGSTOP stops a server.
func (m *Master) Stall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.stall == nil {
		m.faults.stall = make(chan struct{})
	}
}

// Resume ends a stall, as SIGCONT does.
func (m *Master) Resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.resume()
}

// Delay makes everything sent from now on arrive later: a request by the first delay and its
// reply by the second, 0 for none.
func (m *Master) Delay(request, reply time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.request, m.faults.reply = request, reply
}

// LoseReplies makes the master execute each of the next n requests, on any connection, and cut
// the connection instead of replying.
func (m *Master) LoseReplies(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.loseReplies = max(n, 0)
}

// LoseRequests loses each of the next n requests, as counted by [Master.LoseReplies], before
// it reaches the master, and cuts its connection.
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

// delay returns how long something sent now takes, in addition to the delay of its path.
func (m *Master) delay(d faultlink.Direction) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d == faultlink.ToServer {
		return m.faults.request
	}
	return m.faults.reply
}
