package inmemory

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/port"
)

// virtualPoolSize is more than the callers that a test puts on one client. A caller that has
// to wait for a connection takes a timer from a pool that go-redis shares between all clients
// of the process, and a timer made in one bubble crashes the next.
const virtualPoolSize = 4096

// Master is one in-memory Redis master and the link in front of it. Its methods are safe for
// concurrent use.
type Master struct {
	addr    string
	virtual bool
	port    *port.Reservation // nil if virtual
	redis   *miniredis.Miniredis
	server  *server.Server

	// turn holds one token, which is taken to kill, restart or close the master. It is a
	// channel because that takes a while, and waiting for a mutex stops the clock of a
	// synctest bubble.
	turn chan struct{}

	direct *faultlink.Path // of connections without a path of their own

	mu       sync.Mutex // never held while anything blocks
	closed   bool
	up       bool
	listener *faultlink.Listener // nil if virtual or down
	conns    faultlink.Set
	clients  []*redis.Client
	password string
	faults   faults
	identity identity
	stepped  time.Duration         // how far JumpClock has moved the clock
	queueing map[*server.Peer]bool // connections on which a transaction has begun
	refusal  string                // the error that answers every command; empty for none
	own      *server.Peer          // commands of this peer are never refused; nil for none
	commands [][]string
	observer func(Exchange)
}

// newMaster returns the i-th master of a set, up and empty.
func newMaster(i int, virtual bool) (*Master, error) {
	m := &Master{
		virtual: virtual,
		redis:   miniredis.NewMiniRedis(),
		turn:    make(chan struct{}, 1),
		direct:  faultlink.NewPath(),

		queueing: map[*server.Peer]bool{},
	}
	m.redis.ClockTTL(true)

	// The first Dial starts miniredis without a listener, so that this package serves the
	// connections.
	first, err := m.redis.Dial()
	if err != nil {
		return nil, err
	}
	first.Close()
	m.server = m.redis.Server()
	m.server.SetPreHook(m.tell)

	if virtual {
		m.addr = virtualAddr(i)
	} else {
		if m.port, err = port.Reserve(); err != nil {
			m.redis.Close()
			return nil, err
		}
		m.addr = m.port.Addr()
	}
	if err := m.start(newIdentity(InitialUptime)); err != nil {
		m.port.Release()
		m.redis.Close()
		return nil, err
	}
	return m, nil
}

// Addr returns the master's host and port, which never change.
func (m *Master) Addr() string { return m.addr }

// URL returns the master's URL as redis.ParseURL takes it, with the password of
// [Master.SetPassword], or "" for a virtual master.
func (m *Master) URL() string {
	if m.virtual {
		return ""
	}
	u := url.URL{Scheme: "redis", Host: m.addr}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.password != "" {
		u.User = url.UserPassword("", m.password)
	}
	return u.String()
}

// Client returns a new client of this master, with go-redis's default options as changed by
// configure.
func (m *Master) Client(configure ...func(*redis.Options)) *redis.Client {
	m.mu.Lock()
	opts := &redis.Options{Addr: m.addr, Password: m.password}
	m.mu.Unlock()
	if m.virtual {
		opts.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return m.dialInProcess(ctx, nil) }
		opts.PoolSize = virtualPoolSize
		opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
	for _, f := range configure {
		f(opts)
	}
	client := redis.NewClient(opts)

	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients = append(m.clients, client)
	return client
}

// Miniredis returns the server behind the link.
func (m *Master) Miniredis() *miniredis.Miniredis { return m.redis }

// SetPassword makes new connections authenticate as the default user; "" ends that.
func (m *Master) SetPassword(password string) {
	m.redis.RequireAuth(password)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.password = password
}

// close kills the master for good and closes its clients.
func (m *Master) close() error {
	m.mu.Lock()
	m.closed = true
	clients := m.clients
	m.clients = nil
	m.mu.Unlock()

	// Close the clients first: a client that outlives its server redials and logs errors.
	var errs []error
	for _, c := range clients {
		if err := c.Close(); !errors.Is(err, redis.ErrClosed) {
			errs = append(errs, err)
		}
	}
	m.Kill()
	m.redis.Close()
	m.port.Release()
	return errors.Join(errs...)
}
