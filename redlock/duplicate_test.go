package redlock_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/redlock"
)

// movable is an address that leads to a master, and later to another.
type movable struct {
	mu    sync.Mutex
	to    *inmemory.Path
	paths map[*inmemory.Master]*inmemory.Path
}

// moves sends new connections to a master after a delay, and breaks those that there are.
func (a *movable) moves(to *inmemory.Master, delay time.Duration) {
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

func (a *movable) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	a.mu.Lock()
	to := a.to
	a.mu.Unlock()
	return to.Client().Options().Dialer(ctx, network, addr)
}

// silence lets nothing through on the connections that there are.
func (a *movable) silence() {
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

// moving is a Redlock whose nodes' addresses can be led to other masters. Its clients do
// not keep a connection that nobody has used for a second.
func (b *bed) moving(cfg redlock.Config, n int, options ...func(*redis.Options)) (*redlock.Redlock, []*movable) {
	b.Helper()
	var nodes []redis.UniversalClient
	var addrs []*movable
	for i := range n {
		a := &movable{paths: map[*inmemory.Master]*inmemory.Path{}}
		a.moves(b.masters.Master(i), 0)
		addrs = append(addrs, a)
		nodes = append(nodes, b.masters.Master(i).Client(func(o *redis.Options) {
			o.Dialer, o.ConnMaxIdleTime = a.dial, time.Second
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

// everyAcquisition is what can grant a key to a value that has it already, and SET.
var everyAcquisition = map[string]redlock.Config{
	"plain":   {},
	"fencing": {Fencing: true},
	"fair":    {Fair: true},
	"both":    {Fencing: true, Fair: true},
}

// While the lanes rest, one node's address comes to lead to another node's server, and the
// third node dies: one server of three is no majority.
func TestAcquireFindsADuplicateThatAppearedWhileTheLaneRested(t *testing.T) {
	for name, cfg := range everyAcquisition {
		t.Run(name, func(t *testing.T) {
			virtually(t, 3, redlock.Config{}, func(b *bed) {
				r, addrs := b.moving(cfg, 3)
				l := b.take(r)
				b.settle()
				b.release(l)
				time.Sleep(2500 * time.Millisecond)
				addrs[0].moves(b.masters.Master(1), 0)
				b.masters.Kill(2)
				for range 2 {
					_, err := r.TryAcquire(ctx, key, ttl)
					require.ErrorIs(b, err, redlock.ErrDuplicateNode)
					b.settle()
					assert.Empty(b, b.has(key))
				}
			})
		})
	}
}

// A server that is too busy to say who it is, and grants right after, may be another node's.
func TestAcquireDoesNotCountAServerThatIsTooBusyToSayWhoItIs(t *testing.T) {
	for name, cfg := range everyAcquisition {
		t.Run(name, func(t *testing.T) {
			virtually(t, 3, redlock.Config{}, func(b *bed) {
				r, addrs := b.moving(cfg, 3)
				l := b.take(r)
				b.settle()
				b.release(l)
				time.Sleep(2500 * time.Millisecond)
				var asked atomic.Int32
				b.masters.Master(1).Miniredis().Server().SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
					if command != "INFO" {
						return false
					}
					asked.Add(1)
					p.WriteError("BUSY Redis is busy running a script.")
					return true
				})
				addrs[0].moves(b.masters.Master(1), 0)
				b.masters.Kill(2)
				for range 2 {
					_, err := r.TryAcquire(ctx, key, ttl)
					require.ErrorIs(b, err, redlock.ErrNoQuorum)
					b.settle()
					assert.Empty(b, b.has(key))
				}
				assert.GreaterOrEqual(b, asked.Load(), int32(4), "by two nodes, with each attempt")
				b.masters.Master(1).Miniredis().Server().SetPreHook(nil)
				_, err := r.TryAcquire(ctx, key, ttl)
				require.ErrorIs(b, err, redlock.ErrDuplicateNode)
			})
		})
	}
}

// The same with a client that has one connection, which the lane gives back at once.
func TestAcquireFindsADuplicateOverTheOnlyConnection(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		var nodes []redis.UniversalClient
		for i := range 3 {
			a := &movable{paths: map[*inmemory.Master]*inmemory.Path{}}
			a.moves(b.masters.Master(i), 0)
			nodes = append(nodes, b.masters.Master(i).Client(func(o *redis.Options) {
				o.Dialer, o.PoolSize, o.ConnMaxIdleTime = a.dial, 1, time.Millisecond
			}))
			if i == 0 {
				defer func() { a.moves(b.masters.Master(0), 0) }()
				time.AfterFunc(50*time.Millisecond, func() { a.moves(b.masters.Master(1), 0) })
			}
		}
		r, err := redlock.New(nodes, redlock.Config{Fencing: true})
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		l := b.take(r)
		b.settle()
		b.release(l)
		time.Sleep(100 * time.Millisecond)
		b.masters.Kill(2)
		_, err = r.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrDuplicateNode)
	})
}

// The same for an extension, which each of the two would grant.
func TestExtendFindsADuplicateThatAppearedWhileTheLaneRested(t *testing.T) {
	for name, cfg := range everyAcquisition {
		t.Run(name, func(t *testing.T) {
			virtually(t, 3, redlock.Config{}, func(b *bed) {
				r, addrs := b.moving(cfg, 3)
				l, err := r.TryAcquire(ctx, key, time.Minute)
				require.NoError(b, err)
				time.Sleep(2500 * time.Millisecond)
				addrs[0].moves(b.masters.Master(1), 0)
				b.masters.Kill(2)
				require.ErrorIs(b, l.Extend(ctx, time.Minute), redlock.ErrNoQuorum)
				_ = l.Release(ctx)
			})
		})
	}
}

// In one round a node grants, its address comes to lead to another server, which its lane
// meets, and another node's address to the server that has granted: that grants the same
// value again, and has one vote.
func TestAcquireCountsAServerOnceInARound(t *testing.T) {
	for name, cfg := range everyAcquisition {
		t.Run(name, func(t *testing.T) {
			virtually(t, 4, redlock.Config{}, func(b *bed) {
				r, addrs := b.moving(cfg, 3)
				l := b.take(r)
				b.settle()
				b.release(l)
				time.Sleep(2500 * time.Millisecond)
				b.masters.Kill(2)
				addrs[0].moves(b.masters.Master(1), 5*time.Millisecond)
				tried := make(chan error, 1)
				go func() { // node 1 grants at once, node 0 has to shake hands
					_, err := r.TryAcquire(ctx, key, ttl)
					tried <- err
				}()
				time.Sleep(time.Millisecond)
				require.Equal(b, []int{1}, b.has(key))
				addrs[1].moves(b.masters.Master(3), 0)
				for range 2 { // the first finds the connection broken
					go func() { _, _ = r.TryAcquire(ctx, "another", ttl) }()
					time.Sleep(time.Millisecond)
				}
				require.NotEmpty(b, b.masters.Master(3).Commands(), "node 1 is another server now")
				assert.Error(b, <-tried)
				time.Sleep(time.Second)
			})
		})
	}
}

// A node's server dies for that node and shows up behind another one: it may vote there.
func TestAcquireForgetsADuplicateWhoseOtherNodeIsDead(t *testing.T) {
	for name, cfg := range eachWay {
		t.Run(name, func(t *testing.T) {
			virtually(t, 4, redlock.Config{}, func(b *bed) {
				r, addrs := b.moving(cfg, 3)
				l := b.take(r)
				b.settle()
				b.release(l)
				// Server 0 is gone for good, and server 1 answers at node 0's address too.
				addrs[0].moves(b.masters.Master(1), 0)
				b.masters.Kill(0)
				time.Sleep(time.Millisecond)
				// An attempt can be decided before node 0 has identified its server.
				for range 10 {
					l, err := r.TryAcquire(ctx, key, ttl)
					b.settle()
					if errors.Is(err, redlock.ErrDuplicateNode) {
						break
					}
					if err == nil {
						b.release(l)
						b.settle()
					}
				}
				_, err := r.TryAcquire(ctx, key, ttl)
				require.ErrorIs(b, err, redlock.ErrDuplicateNode)
				// Then nothing answers at node 1's address any more.
				addrs[1].moves(b.masters.Master(3), 0)
				b.masters.Kill(3)
				time.Sleep(2 * guardFor)
				if _, err := r.TryAcquire(ctx, key, ttl); err != nil { // the client has to find out
					time.Sleep(5 * time.Second) // go-redis dials five times
					_, err2 := r.TryAcquire(ctx, key, ttl)
					require.NoError(b, err2, "%v", err)
				}
				b.settle()
				assert.Equal(b, []int{1, 2}, b.has(key))
			})
		})
	}
}
