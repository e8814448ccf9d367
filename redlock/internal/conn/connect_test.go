package conn_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A load balancer drops connections that were idle for a minute. The first acquisition
// after that finds its majority all the same, and no node is sent SET twice.
func TestConnectionDroppedWhileIdleIsReplaced(t *testing.T) {
	for name, options := range map[string]func(*redis.Options){
		"defaults":       func(*redis.Options) {},
		"heeds deadline": func(o *redis.Options) { o.ContextTimeoutEnabled = true },
		"one connection": func(o *redis.Options) { o.PoolSize = 1 },
	} {
		for how, drop := range map[string]func(a *virtual.Movable){
			"broken": (*virtual.Movable).Break,
			"silent": (*virtual.Movable).Silence,
		} {
			if how == "silent" && name != "heeds deadline" {
				continue // go-redis reads on until its own read timeout
			}
			t.Run(name+", "+how, func(t *testing.T) {
				virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
					r, addrs := b.Moving(redlock.Config{}, 3, options, func(o *redis.Options) { o.ConnMaxIdleTime = -1 })
					b.Cycle(r)
					time.Sleep(time.Minute)
					for i, a := range addrs {
						drop(a)
						b.Commands(i)
					}
					l := b.Take(r)
					time.Sleep(time.Second)
					for i := range addrs {
						assert.Equal(b, []string{"SET"}, b.Commands(i))
					}
					b.Release(l)
				})
			})
		}
	}
}

// A lane that is in use all the time gives its connection back, for the pool to replace it
// after ConnMaxLifetime.
func TestConnectionOfABusyLaneHeedsConnMaxLifetime(t *testing.T) {
	for life, want := range map[time.Duration]int32{0: 1, 10 * time.Second: 6} {
		virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
			var dials atomic.Int32
			dial := b.Masters.Master(0).Client().Options().Dialer
			client := b.Masters.Master(0).Client(func(o *redis.Options) {
				o.ConnMaxLifetime = life
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					dials.Add(1)
					return dial(ctx, network, addr)
				}
			})
			r, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{})
			require.NoError(b, err)
			for range 120 { // a minute
				b.Release(b.Take(r))
				time.Sleep(500 * time.Millisecond)
			}
			if life == 0 {
				assert.Equal(b, want, dials.Load())
			} else {
				assert.GreaterOrEqual(b, dials.Load(), want)
			}
			require.NoError(b, r.Close())
		})
	}
}

// streaming is a provider that never has anything new.
type streaming struct{}

func (streaming) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return auth.NewBasicCredentials("default", ""), func() error { return nil }, nil
}

// A client that would panic, and lose a connection of its pool each time, is refused.
func TestClientWithStreamingCredentialsIsRefused(t *testing.T) {
	for _, client := range []redis.UniversalClient{
		redis.NewClient(&redis.Options{StreamingCredentialsProvider: streaming{}}),
		redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:1"}, StreamingCredentialsProvider: streaming{}}),
	} {
		_, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{})
		assert.ErrorContains(t, err, "nodes[0] has a StreamingCredentialsProvider")
		require.NoError(t, client.Close())
	}
}

// A node whose handshake is garbage for a while is back afterwards, and the application's
// client has all of its connections but one.
func TestHandshakesThatAreGarbledLeaveNoDamage(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		var garbled atomic.Bool
		garbled.Store(true)
		master := b.Masters.Master(0)
		dial := master.Client().Options().Dialer
		client := master.Client(func(o *redis.Options) {
			o.PoolSize, o.PoolTimeout = 3, time.Second
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if !garbled.Load() {
					return dial(ctx, network, addr)
				}
				ours, theirs := net.Pipe()
				go func() {
					defer func() { _ = theirs.Close() }()
					if _, err := theirs.Read(make([]byte, 1024)); err == nil {
						_, _ = theirs.Write([]byte("%9223372036854775807\r\n$9223372036854775807\r\n"))
					}
				}()
				return ours, nil
			}
		})
		r, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{})
		require.NoError(b, err)
		for range 10 {
			_, err := r.TryAcquire(ctx, key, ttl)
			require.ErrorIs(b, err, redlock.ErrNoQuorum)
			time.Sleep(time.Second)
		}
		garbled.Store(false)
		time.Sleep(time.Second)
		_, _ = r.TryAcquire(ctx, key, ttl)
		time.Sleep(ttl)
		b.Release(b.Take(r))
		require.NoError(b, r.Close())
		require.NoError(b, client.Ping(ctx).Err())
	})
}

// Servers that have another password by the time that their connections are made
// anew do not let us in. After a handshake that failed go-redis leaves every command
// of a pipeline as it was: none may take the reply that it had before for an answer.
func TestHandshakeThatIsRefusedIsNoAnswer(t *testing.T) {
	for _, n := range []int{1, 8} { // a command, a pipeline
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			for _, m := range b.Masters.All() {
				m.SetPassword("first")
			}
			lock := b.NewRedlock(redlock.Config{})
			burst := func(name string) (held []*redlock.Lock) {
				var all sync.WaitGroup
				var mu sync.Mutex
				for i := range n {
					all.Go(func() {
						l, err := lock.TryAcquire(ctx, fmt.Sprint(name, i), time.Minute)
						if err != nil {
							assert.ErrorIs(t, err, redlock.ErrNoQuorum)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						held = append(held, l)
					})
				}
				all.Wait()
				return held
			}
			for i := range 3 {
				require.Len(t, burst(fmt.Sprint("before ", i, " ")), n)
				b.Settle()
			}
			for _, m := range b.Masters.All() {
				m.SetPassword("second")
			}
			for i := range 3 {
				b.Masters.Kill(0, 1, 2)
				b.Settle()
				require.NoError(t, b.Masters.Restart(0, 1, 2))
				for j := range 4 {
					assert.Empty(t, burst(fmt.Sprint("after ", i, " ", j, " ")))
					time.Sleep(700 * time.Millisecond)
				}
			}
		})
	}
}

// With RESP3 go-redis asks the kernel for push messages before each command, which
// nobody sends us.
func TestHandshakeAsksForRESP2ByDefault(t *testing.T) {
	masters := inmemory.Start(t, 1)
	for query, version := range map[string]string{"": "2", "?protocol=3": "3"} {
		masters.Master(0).ResetCommands()
		r, err := redlock.Open([]string{masters.URLs()[0] + query}, redlock.Config{})
		require.NoError(t, err)
		_, err = r.TryAcquire(ctx, key, ttl)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		assert.True(t, slices.ContainsFunc(masters.Master(0).Commands(), func(c []string) bool {
			return c[0] == "HELLO" && c[1] == version
		}), "%q: %v", query, masters.Master(0).Commands())
	}
}

// The application's own commands on the same client find the master back. The lane, which
// would dial it within half a second, need not wait for that.
func TestDialThatWorksEndsTheWaitForAMaster(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		var nodes []redis.UniversalClient
		for _, m := range b.Masters.All() {
			nodes = append(nodes, m.Client(func(o *redis.Options) { o.DialerRetries, o.MaxRetries, o.PoolSize = 1, -1, 1000 }))
		}
		r, err := redlock.New(nodes, redlock.Config{})
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		cycle := func() (on []int) {
			l, err := r.TryAcquire(ctx, key, ttl)
			require.NoError(b, err)
			b.Settle()
			on = b.Has(key)
			require.NoError(b, l.Release(ctx))
			b.Settle()
			return on
		}
		b.Masters.Kill(0)
		for range 2250 {
			cycle()
			time.Sleep(time.Millisecond)
		}
		require.NoError(b, b.Masters.Restart(0))
		assert.Equal(b, []int{1, 2}, cycle(), "a pause")
		require.NoError(b, nodes[0].Ping(ctx).Err())
		b.Settle()
		assert.Equal(b, []int{0, 1, 2}, cycle())
	})
}
