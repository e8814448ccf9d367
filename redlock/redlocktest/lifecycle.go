package redlocktest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// Kill ends the master as SIGKILL ends a server that has written everything to
// disk: new connections are refused, existing ones are cut, what was on its
// way or waiting is lost, and data and scripts stay as they are. When Kill
// returns, no command is executed any more, and the uptime is over. Killing a
// dead master does nothing.
//
// Kill waits for the command that is being executed, so it must not be called
// from a miniredis hook.
func (m *Master) Kill() {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	m.stop()
}

// Restart brings the master back on its address with its memory: the data as
// Kill left it, less what has expired since, and the script cache. One that is
// alive is killed first. It is a new process, and INFO says so: a new run_id and
// master_replid, an uptime of 0, and the role of a master, also if it had been
// demoted. Stall does not outlive a restart; delays and losses, which belong to
// the network, do.
//
// If the port has been taken by someone else meanwhile, Restart tries again
// for about a second, then returns an error and leaves the master dead. After
// [Masters.Close] it always does. A virtual master's port is never taken.
func (m *Master) Restart() error {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	m.stop()
	return m.start(newIdentity(0))
}

// RestartEmpty brings the master back as [Master.Restart] does but without its
// memory: no keys, no scripts. After an error the master is dead, and its keys
// are gone.
func (m *Master) RestartEmpty() error {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	m.stop()
	if err := m.forget(); err != nil {
		return err
	}
	return m.start(newIdentity(0))
}

// FailOver has another server take over the master's address: a replica that has been
// up for [InitialUptime] and had not heard of the keys yet, since replication does not
// wait. The old server is killed, if it is alive, and does not come back. So a client
// finds no keys and no scripts, a long uptime, a new run_id and master_replid, and in
// master_replid2 the old master_replid. Otherwise it is as [Master.RestartEmpty], also
// after an error.
func (m *Master) FailOver() error {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	m.stop()
	if err := m.forget(); err != nil {
		return err
	}
	return m.start(newIdentity(InitialUptime).continues(m.self().replID))
}

// PromotedFrom makes the master one that was a replica of another for a while and has been
// promoted: by INFO it has been up for [InitialUptime], has a new run_id and
// master_replid, and in master_replid2 the other's master_replid. Its memory and its
// connections stay as they are; a test that needs the other's keys puts them in by
// [Master.Miniredis].
func (m *Master) PromotedFrom(old *Master) {
	next := newIdentity(InitialUptime).continues(old.self().replID)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.identity = next
}

// forget empties the memory.
func (m *Master) forget() error {
	m.redis.FlushAll()
	return m.FlushScripts()
}

// start lets connections in, to a server with this identity. The master must be down.
func (m *Master) start(id identity) error {
	var ln *listener
	if !m.virtual {
		l, err := listen(m.addr)
		if err != nil {
			return fmt.Errorf("redlocktest: master cannot listen: %w", err)
		}
		ln = &listener{Listener: l, done: make(chan struct{})}
	}

	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		if ln != nil {
			ln.Close()
		}
		return fmt.Errorf("redlocktest: master %s: %w", m.addr, net.ErrClosed)
	}
	m.up = true
	m.identity = id
	m.listener = ln
	m.faults.resume()
	m.mu.Unlock()

	if ln != nil {
		go ln.accept(m)
	}
	return nil
}

// stop refuses and cuts connections, and returns when neither a goroutine of a
// link nor a command is left.
func (m *Master) stop() {
	m.mu.Lock()
	m.up = false
	ln := m.listener
	m.listener = nil
	links := make([]*link, 0, len(m.links))
	for l := range m.links {
		links = append(links, l)
	}
	m.mu.Unlock()

	if ln != nil {
		ln.Close()
		<-ln.done
	}
	for _, l := range links {
		l.sever()
	}
	// A command that waits, such as BLPOP, ends only with miniredis's context,
	// which it does not renew by itself.
	m.redis.CtxCancel()
	for _, l := range links {
		<-l.done
	}
	m.redis.Lock()
	m.redis.Ctx, m.redis.CtxCancel = context.WithCancel(context.Background())
	m.redis.Unlock()
}

// admit connects a new link to the server, or reports false if the master is
// down.
func (m *Master) admit(l *link) bool {
	m.mu.Lock()
	up := m.up
	if up {
		m.links[l] = struct{}{}
		m.numbered++
		l.number = m.numbered
	}
	m.mu.Unlock()
	if up {
		if l.path != nil {
			l.path.add(l)
		}
		// A link that has been severed meanwhile ends as soon as it is served.
		l.serve(m.server)
	}
	return up
}

// FlushScripts empties the script cache, as SCRIPT FLUSH does; the next EVALSHA
// is answered with NOSCRIPT. It fails, and has flushed nothing, only if a
// miniredis hook answers in the server's place, or if the server has users and
// [Master.SetPassword] was not told.
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
