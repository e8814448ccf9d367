package conn_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// counter is a hook as a tracing library would add it.
type counter struct{ commands *atomic.Int32 }

func (c counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			c.count(cmd)
		}
		return next(ctx, cmds)
	}
}

func (c counter) count(cmd redis.Cmder) {
	if cmd.Name() == "set" || strings.HasPrefix(cmd.Name(), "eval") {
		c.commands.Add(1)
	}
}

func TestClientHooksSeeItsCommands(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		client := b.Masters.Master(0).Client()
		var n atomic.Int32
		client.AddHook(counter{&n})
		r, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{})
		require.NoError(t, err)
		l, err := r.TryAcquire(ctx, key, ttl)
		require.NoError(t, err)
		require.NoError(t, l.Extend(ctx, ttl))
		require.NoError(t, l.Release(ctx))
		require.NoError(t, r.Close())
		assert.EqualValues(t, 3, n.Load())
	})
}

// A client with a single connection is the application's too.
func TestConnectionIsSharedByALaneIfItIsTheOnlyOne(t *testing.T) {
	masters := inmemory.Start(t, 3)
	var nodes []redis.UniversalClient
	for _, m := range masters.All() {
		nodes = append(nodes, m.Client(func(o *redis.Options) { o.PoolSize = 1 }))
	}
	r, err := redlock.New(nodes, redlock.Config{NodeTimeout: 5 * time.Second})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	l, err := r.TryAcquire(ctx, key, 300*time.Millisecond)
	require.NoError(t, err)
	l.KeepAlive()
	for range 50 {
		for _, n := range nodes {
			require.NoError(t, n.Ping(ctx).Err())
		}
		require.NoError(t, l.Extend(ctx, 300*time.Millisecond))
	}
	require.NoError(t, l.Release(ctx))
}

// A server that claims an absurd length makes go-redis panic; for us it has said
// nothing, and the process goes on.
func TestConnectionSurvivesGarbage(t *testing.T) {
	for _, garbage := range []string{
		"$1000000000000000\r\n", "$9223372036854775807\r\n", "*9223372036854775807\r\n", "*-5\r\n", "$-7\r\n", "?\r\n", "HTTP/1.1 400\r\n\r\n",
	} {
		addr := speaks(t, garbage)
		masters := inmemory.Start(t, 2)
		urls := append(masters.URLs(), "redis://"+addr+"?protocol=2")
		r, err := redlock.Open(urls, redlock.Config{NodeTimeout: 5 * time.Second})
		require.NoError(t, err)
		l, err := r.TryAcquire(ctx, key, ttl)
		require.NoError(t, err, garbage)
		require.NoError(t, l.Release(ctx))
		masters.Kill(0)
		_, err = r.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(t, err, redlock.ErrNoQuorum, garbage)
		require.NoError(t, r.Close())
	}
}

// speaks is a server that shakes hands and then answers everything with one thing.
func speaks(t *testing.T, answer string) (addr string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				lines := bufio.NewReader(conn)
				for {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					// A command is an array; its name is in the third line.
					if !strings.HasPrefix(line, "*") {
						continue
					}
					if _, err = lines.ReadString('\n'); err != nil {
						return
					}
					name, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					reply := answer
					switch strings.ToLower(strings.TrimSpace(name)) {
					case "hello", "client":
						reply = "-ERR unknown command\r\n"
					}
					if _, err := io.WriteString(conn, reply); err != nil {
						return
					}
				}
			})
		}
	})
	return listener.Addr().String()
}
