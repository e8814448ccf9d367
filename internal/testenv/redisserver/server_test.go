package redisserver

import (
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestKillAndRestart(t *testing.T) {
	s := Start(t, 1)[0]
	c := s.Client()
	require.NoError(t, c.Set(ctx, "k", "v", 0).Err())
	addr, pid := s.Addr(), s.PID()

	s.Kill()
	require.Zero(t, s.PID())
	_, err := net.Dial("tcp", addr)
	require.Error(t, err)
	s.Kill() // again: nothing happens

	require.NoError(t, s.Restart())
	require.Equal(t, addr, s.Addr())
	require.NotEqual(t, pid, s.PID())
	require.ErrorIs(t, c.Get(ctx, "k").Err(), redis.Nil, "memory survived")

	pid = s.PID()
	require.NoError(t, s.Restart(), "of a server that lives")
	require.NotEqual(t, pid, s.PID())
	require.NoError(t, c.Ping(ctx).Err())
}

func TestPauseAndResume(t *testing.T) {
	s := Start(t, 1)[0]
	c := s.Client(func(o *redis.Options) { o.MaxRetries = -1; o.ReadTimeout = 50 * time.Millisecond })
	require.NoError(t, c.Ping(ctx).Err())

	require.NoError(t, s.Pause())
	stopped, err := suspended(s.PID())
	require.NoError(t, err)
	require.True(t, stopped)
	err = c.Set(ctx, "k", "v", 0).Err()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, s.Pause(), "twice")
	conn, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err, "the system accepts for a paused server")
	defer conn.Close()

	require.NoError(t, s.Resume())
	patient := s.Client()
	require.Equal(t, "v", patient.Get(ctx, "k").Val(), "what waited in the socket is done late")

	require.NoError(t, s.Pause())
	s.Kill()
	require.Error(t, s.Pause())
	require.Error(t, s.Resume())
	require.NoError(t, s.Restart())
	require.NoError(t, patient.Ping(ctx).Err())
}

func TestStopIsForGood(t *testing.T) {
	needServer(t)
	servers, err := Launch(1)
	require.NoError(t, err)
	s := servers[0]
	c := s.Client()
	require.NoError(t, c.Ping(ctx).Err())
	s.Stop()
	s.Stop()
	require.ErrorIs(t, c.Ping(ctx).Err(), redis.ErrClosed)
	require.ErrorIs(t, s.Client().Ping(ctx).Err(), redis.ErrClosed)
	require.Error(t, s.Restart())
	require.NoDirExists(t, s.Dir())
}

// For the kernel, the parent of a process is the thread that starts it. A server must not end
// with the thread that called Launch, nor with any other thread.
func TestServerOutlivesThreads(t *testing.T) {
	needServer(t)
	var servers []*Server
	var g sync.WaitGroup
	g.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var err error
		if servers, err = Launch(1); err == nil {
			err = servers[0].Restart()
		}
		if err != nil {
			t.Error(err)
		}
	})
	g.Wait()
	require.Len(t, servers, 1)
	s := servers[0]
	t.Cleanup(s.Stop)
	pid := s.PID()
	for range 20 {
		for range 20 {
			g.Go(runtime.LockOSThread)
		}
		g.Wait()
		runtime.GC()
	}
	require.NoError(t, s.Client().Ping(ctx).Err())
	require.Equal(t, pid, s.PID())
}

func TestConcurrentLives(t *testing.T) {
	s := Start(t, 1)[0]
	var g sync.WaitGroup
	for range 4 {
		g.Go(s.Kill)
		g.Go(func() { _ = s.Restart() })
		g.Go(func() { _ = s.Pause() })
		g.Go(func() { _ = s.Resume() })
		g.Go(func() { _ = s.PID() })
	}
	g.Wait()
	require.NoError(t, s.Restart())
	require.NoError(t, s.Client().Ping(ctx).Err())
}
