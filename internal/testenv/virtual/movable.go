package virtual

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/redlock"
)

// Movable is an address that leads to a master, and later to another.
type Movable struct {
	mu    sync.Mutex
	to    *inmemory.Path
	paths map[*inmemory.Master]*inmemory.Path
}

// NewMovable returns an address that leads to the master.
func NewMovable(to *inmemory.Master) *Movable {
	a := &Movable{paths: map[*inmemory.Master]*inmemory.Path{}}
	a.Moves(to, 0)
	return a
}

// Moves breaks the connections and leads new ones to another master. Both directions of the
// new path have the delay.
func (a *Movable) Moves(to *inmemory.Master, delay time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.to
	if a.paths[to] == nil {
		a.paths[to] = to.Path()
	}
	a.to = a.paths[to]
	a.to.Shape(func(faultlink.Direction) (time.Duration, bool) { return delay, false })
	if before != nil {
		before.Break()
	}
}

// Dial connects to the master that the address leads to.
func (a *Movable) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	a.mu.Lock()
	to := a.to
	a.mu.Unlock()
	return to.Client().Options().Dialer(ctx, network, addr)
}

// Break closes the connections.
func (a *Movable) Break() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.to.Break()
}

// Silence holds everything on the open connections. New ones are not affected.
func (a *Movable) Silence() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.to.Hold(true, true)
	for master, path := range a.paths {
		if path == a.to {
			a.to = master.Path()
			a.paths[master] = a.to
			return
		}
	}
}

// Moving makes a Redlock on n addresses that can be led to other masters. Its clients drop a
// connection that has been idle for a second. It is closed with the test.
func (b *Bed) Moving(cfg redlock.Config, n int, options ...func(*redis.Options)) (*redlock.Redlock, []*Movable) {
	b.Helper()
	var nodes []redis.UniversalClient
	var addrs []*Movable
	for i := range n {
		a := NewMovable(b.Masters.Master(i))
		addrs = append(addrs, a)
		nodes = append(nodes, b.Masters.Master(i).Client(func(o *redis.Options) {
			o.Dialer, o.ConnMaxIdleTime = a.Dial, time.Second
			for _, f := range options {
				f(o)
			}
		}))
	}
	r, err := redlock.New(nodes, cfg)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, r.Close()) })
	return r, addrs
}
