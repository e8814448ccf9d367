package redisserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

// Server is one redis-server. Its methods are safe for concurrent use, even from goroutines
// other than the test's.
type Server struct {
	settings settings
	command  command
	dir      string
	port     *port.Reservation // nil on a unix socket
	bus      *port.Reservation // the bus port of a cluster's server; else nil
	socket   string            // empty on TCP
	clients  closers

	mu      sync.Mutex // held for a whole start, kill, pause or stop
	process *process
	stopped bool
}

// portTries bounds the search for a port on which no other program listens.
const portTries = 20

// newServer starts a server. After an error nothing of it is left.
func newServer(settings settings) (*Server, error) {
	for try := 1; ; try++ {
		s, err := tryServer(settings)
		if err == nil {
			return s, nil
		}
		if try == portTries || !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
}

func tryServer(settings settings) (_ *Server, err error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	s := &Server{settings: settings}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	if s.dir, err = newDir(); err != nil {
		return nil, err
	}
	var at listen
	if settings.unix {
		s.socket = filepath.Join(s.dir, "redis.sock")
		at.socket = s.socket
	} else {
		if s.port, err = port.Reserve(); err != nil {
			return nil, err
		}
		at.port = s.port.Port
	}
	if settings.cluster {
		if s.bus, err = port.Reserve(); err != nil {
			return nil, err
		}
		at.bus = s.bus.Port
	}
	if settings.tls {
		if err := settings.authority.write(s.dir); err != nil {
			return nil, fmt.Errorf("redisserver: %w", err)
		}
	}
	conf := filepath.Join(s.dir, "redis.conf")
	if err := os.WriteFile(conf, []byte(settings.redisConf(s.dir, at)), 0o600); err != nil {
		return nil, fmt.Errorf("redisserver: %w", err)
	}
	s.command = command{path: path, args: []string{conf}, dir: s.dir, ready: "ready to accept connections"}
	if err := s.run(); err != nil {
		return nil, err
	}
	return s, nil
}

// newDir makes a temporary directory outside the test's: with a test's name, the path of a
// socket would be too long.
func newDir() (string, error) {
	dir, err := os.MkdirTemp("", "redis-")
	if err != nil {
		return "", fmt.Errorf("redisserver: %w", err)
	}
	return dir, nil
}

// run starts the process and waits until it answers. After an error no process is left.
func (s *Server) run() error {
	p, err := s.command.run()
	if err != nil {
		return err
	}
	if err := awaitPing(s.Network(), s.Addr(), s.settings.trust()); err != nil {
		p.kill()
		return fmt.Errorf("%w\n%s", err, p.log)
	}
	s.process = p
	return nil
}

// Network returns "tcp" or "unix".
func (s *Server) Network() string {
	if s.socket != "" {
		return "unix"
	}
	return "tcp"
}

// Addr returns the address to dial: host and port, or the path of a socket.
func (s *Server) Addr() string {
	if s.socket != "" {
		return s.socket
	}
	return s.port.Addr()
}

// Port returns the TCP port, with or without TLS, or 0 on a unix socket.
func (s *Server) Port() int {
	if s.port == nil {
		return 0
	}
	return s.port.Port
}

// Dir returns the server's directory. Stop removes it.
func (s *Server) Dir() string { return s.dir }

// PID returns the process id, or 0 while the server is dead. A restart changes it.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.process.alive() {
		return 0
	}
	return s.process.cmd.Process.Pid
}

// Log returns the last lines that the server has printed since its last start.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return ""
	}
	return s.process.log.String()
}

// Kill sends SIGKILL and returns when the process is gone. Its connections break and, without
// persistence, its memory is lost. The port stays reserved for Restart. Kill also works on a
// paused or dead server.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process.kill()
}

// Restart kills the server if it lives, starts it again on the same port with the same
// configuration, and returns when it answers. Its memory is lost, but a cluster's server keeps
// its slots. After an error the server is dead.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.New("redisserver: restart: server has been stopped for good")
	}
	s.process.kill()
	return s.run()
}

// Pause stops the process with SIGSTOP and returns when it is stopped. The system still
// accepts connections and bytes for it, and nothing is answered. After an error the server may
// be paused or dead.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.pause()
}

// Resume continues a paused server, which then gets the bytes that arrived meanwhile.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.resume()
}

// Stop ends the server for good: it closes the clients made by Client, kills the process and
// waits for it, frees its port and removes its directory. Further calls do nothing.
func (s *Server) Stop() {
	s.clients.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped = true
	s.process.kill()
	s.port.Release()
	s.bus.Release()
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
