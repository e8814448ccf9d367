package redlocktest

import "github.com/alicebob/miniredis/v2/server"

// RefuseCommands answers every command that reaches the master with an error, such as
// "NOAUTH Authentication required.", and executes none; "" lifts it. Handshakes are
// commands too. Connections live on, as those of a server do whose users have changed.
func (m *Master) RefuseCommands(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusal = text
}

// refuse answers a command if all are refused.
func (m *Master) refuse(p *server.Peer) (done bool) {
	m.mu.Lock()
	text := m.refusal
	if p == m.own {
		text = ""
	}
	m.mu.Unlock()
	if text != "" {
		p.WriteError(text)
	}
	return text != ""
}
