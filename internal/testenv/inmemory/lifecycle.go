package inmemory

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
)

// Kill ends the master like SIGKILL ends a server that has written everything to disk.
func (m *Master) Kill() {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	m.stop()
}

// Restart brings the master back on its address with its scripts and its data, except for keys
// that have expired since.
func (m *Master) Restart() error {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	m.stop()
	return m.start(newIdentity(0))
}

// RestartEmpty brings the master back like [Master.Restart], but without keys and scripts.
func (m *Master) RestartEmpty() error {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	m.stop()
	if err := m.forget(); err != nil {
		return err
	}
	return m.start(newIdentity(0))
}

// FailOver makes another server take over the master's address: a replica that has been up for
// [InitialUptime] and has not received the keys yet, because replication is asynchronous.
func (m *Master) FailOver() error {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	m.stop()
	if err := m.forget(); err != nil {
		return err
	}
	return m.start(newIdentity(InitialUptime).continues(m.self().replID))
}

// PromotedFrom makes the master a former replica of old that has been promoted. INFO reports
// an uptime of [InitialUptime], a new run_id and master_replid, and old's master_replid in
// master_replid2. Memory and connections stay as they are; a test that needs old's keys can
// add them with [Master.Miniredis].
func (m *Master) PromotedFrom(old *Master) {
	next := newIdentity(InitialUptime).continues(old.self().replID)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.identity = next
}

// forget deletes all keys and scripts.
func (m *Master) forget() error {
	m.redis.FlushAll()
	return m.FlushScripts()
}

// start lets connections in, to a server with this identity. The master must be down.
func (m *Master) start(id identity) error {
	var ln *faultlink.Listener
	if !m.virtual {
		var err error
		if ln, err = faultlink.Listen(m.addr); err != nil {
			return fmt.Errorf("redlocktest: master cannot listen: %w", err)
		}
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		if ln != nil {
			ln.Close()
		}
		return fmt.Errorf("redlocktest: master %s: %w", m.addr, net.ErrClosed)
	}
	m.up = true
	m.identity = id
	m.listener = ln
	m.faults.resume()
	if ln != nil {
		ln.Serve(m.serve)
	}
	return nil
}

// stop refuses and cuts connections. It returns when no goroutine of a connection and no
// command is left.
func (m *Master) stop() {
	m.mu.Lock()
	m.up = false
	ln := m.listener
	m.listener = nil
	conns := m.conns.All()
	m.mu.Unlock()

	if ln != nil {
		ln.Close()
	}
	for _, c := range conns {
		c.Sever()
	}
	// A command that waits, such as BLPOP, ends only with miniredis's context, which miniredis
	// does not renew by itself.
	m.redis.CtxCancel()
	for _, c := range conns {
		<-c.Done()
	}
	m.redis.Lock()
	m.redis.Ctx, m.redis.CtxCancel = context.WithCancel(context.Background())
	m.redis.Unlock()
}

// FlushScripts empties the script cache, as SCRIPT FLUSH does; the next EVALSHA gets NOSCRIPT.
func (m *Master) FlushScripts() error {
	reply := m.execute([]string{"SCRIPT", "FLUSH"})
	if strings.HasPrefix(reply, "-NOAUTH") {
		reply = m.execute(m.auth(), []string{"SCRIPT", "FLUSH"})
	}
	if !strings.HasPrefix(reply, "+OK") {
		return fmt.Errorf("redlocktest: master %s: script flush: %w", m.addr, errors.New(strings.TrimSpace(reply)))
	}
	return nil
}

// auth returns the command that authenticates the default user.
func (m *Master) auth() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return []string{"AUTH", m.password}
}

// execute runs commands past the link and the log, and returns the last reply.
func (m *Master) execute(commands ...[]string) string {
	var reply bytes.Buffer
	peer := server.NewPeer(bufio.NewWriter(&reply))
	m.mu.Lock()
	m.own = peer
	m.mu.Unlock()
	for _, c := range commands {
		reply.Reset()
		m.server.Dispatch(peer, c)
		peer.Flush()
	}
	return reply.String()
}
