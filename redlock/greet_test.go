package redlock_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A load balancer drops connections that were idle for a minute. The first acquisition
// after that finds its majority all the same, and no node is sent SET twice.
func TestAcquireAfterALongRestFindsItsMajority(t *testing.T) {
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
					l := b.Take(r)
					b.Settle()
					b.Release(l)
					time.Sleep(time.Minute)
					for i, a := range addrs {
						drop(a)
						b.Commands(i)
					}
					l = b.Take(r)
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
func TestABusyLaneHeedsConnMaxLifetime(t *testing.T) {
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
func TestNewRefusesStreamingCredentials(t *testing.T) {
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
func TestAcquireSurvivesGarbledHandshakes(t *testing.T) {
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
