package inmemory

import "github.com/alicebob/miniredis/v2/server"

// RefuseCommands answers every later command, handshakes included, with an error such as
// "NOAUTH Authentication required.", and executes none; "" ends that. Connections stay open,
// as on a server whose users have changed.
func (m *Master) RefuseCommands(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusal = text
}

// refuse answers the command with an error if RefuseCommands is in effect.
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
