package inmemory_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func TestMain(m *testing.M) {
	redis.SetLogger(&logging.VoidLogger{}) // it logs every refused dial of a dead master
	goleak.VerifyTestMain(m)
}

// start starts n masters, and checks after the test that all their goroutines are gone.
func start(t *testing.T, n int) *inmemory.Masters {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) }) // runs after the masters' own cleanup
	return inmemory.Start(t, n)
}

// once turns off a client's retries.
func once(o *redis.Options) {
	o.MaxRetries = -1
	o.DialerRetries = 1
}

func TestMastersAreIndependentAndReachable(t *testing.T) {
	ms := start(t, 3)
	require.Equal(t, 3, ms.Len())
	require.Len(t, ms.All(), 3)
	urls := ms.URLs()
	for i, c := range ms.Clients() {
		require.NoError(t, c.Set(t.Context(), "who", i, 0).Err())

		opts, err := redis.ParseURL(urls[i])
		require.NoError(t, err)
		require.Equal(t, ms.Master(i).Addr(), opts.Addr)
		byURL := redis.NewClient(opts)
		require.Equal(t, fmt.Sprint(i), byURL.Get(t.Context(), "who").Val())
		require.NoError(t, byURL.Close())
	}
}

func TestNewRefusesNoMasters(t *testing.T) {
	for _, n := range []int{0, -1} {
		_, err := inmemory.New(n)
		require.ErrorContains(t, err, "n is")
	}
}

func TestKillRefusesAndCuts(t *testing.T) {
	ms := start(t, 2)
	m := ms.Master(1)
	open, err := net.Dial("tcp", m.Addr())
	require.NoError(t, err)
	defer open.Close()

	ms.Kill(1)
	ms.Kill(1)
	_, err = open.Read(make([]byte, 1))
	require.True(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), err)
	require.ErrorIs(t, m.Client(once).Ping(t.Context()).Err(), syscall.ECONNREFUSED)
	require.NoError(t, ms.Master(0).Client().Ping(t.Context()).Err())
}

func TestRestartKeepsMemory(t *testing.T) {
	ms := start(t, 1)
	m := ms.Master(0)
	c, addr := m.Client(), m.Addr()
	require.NoError(t, c.Set(t.Context(), "key", "value", time.Hour).Err())
	sha := c.ScriptLoad(t.Context(), "return 7").Val()

	ms.Kill(0)
	require.Equal(t, []string{"key"}, m.Miniredis().Keys(), "a look at the dead")
	require.NoError(t, ms.Restart(0))
	require.Equal(t, addr, m.Addr())
	require.Equal(t, "value", c.Get(t.Context(), "key").Val())
	require.Equal(t, int64(7), c.EvalSha(t.Context(), sha, nil).Val())
	require.InDelta(t, time.Hour, c.PTTL(t.Context(), "key").Val(), float64(time.Minute))
}

func TestRestartEmptyForgets(t *testing.T) {
	ms := start(t, 1)
	m := ms.Master(0)
	m.SetPassword("s3cret") // RestartEmpty must work with a password
	c := m.Client()
	require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
	sha := c.ScriptLoad(t.Context(), "return 7").Val()
	open, err := net.Dial("tcp", m.Addr())
	require.NoError(t, err)
	defer open.Close()

	require.NoError(t, m.RestartEmpty()) // from alive
	_, err = open.Read(make([]byte, 1))
	require.Error(t, err, "a connection outlived its server")
	require.ErrorIs(t, c.Get(t.Context(), "key").Err(), redis.Nil)
	require.True(t, redis.HasErrorPrefix(c.EvalSha(t.Context(), sha, nil).Err(), "NOSCRIPT"))
}

func TestRestartReportsATakenPort(t *testing.T) {
	m := start(t, 1).Master(0)
	m.Kill()
	thief, err := net.Listen("tcp", m.Addr())
	require.NoError(t, err)
	require.ErrorIs(t, m.Restart(), syscall.EADDRINUSE)
	require.NoError(t, thief.Close())
	require.NoError(t, m.Restart())
	require.NoError(t, m.Client().Ping(t.Context()).Err())
}

func TestFlushScripts(t *testing.T) {
	m := start(t, 1).Master(0)
	c := m.Client()
	sha := c.ScriptLoad(t.Context(), "return 7").Val()
	require.NoError(t, m.FlushScripts())
	require.True(t, redis.HasErrorPrefix(c.EvalSha(t.Context(), sha, nil).Err(), "NOSCRIPT"))

	m.Miniredis().SetError("LOADING in a moment")
	require.ErrorContains(t, m.FlushScripts(), "LOADING")
}

func TestPassword(t *testing.T) {
	m := start(t, 1).Master(0)
	before := m.Client()
	require.NoError(t, before.Set(t.Context(), "key", 1, 0).Err())
	m.SetPassword("p@ss:word")
	require.True(t, redis.HasErrorPrefix(before.Get(t.Context(), "key").Err(), "NOAUTH"))

	opts, err := redis.ParseURL(m.URL())
	require.NoError(t, err)
	byURL := redis.NewClient(opts)
	defer byURL.Close()
	for _, c := range []*redis.Client{m.Client(), byURL} {
		require.Equal(t, "1", c.Get(t.Context(), "key").Val())
	}
	wrong := m.Client(once, func(o *redis.Options) { o.Password = "guess" })
	require.True(t, redis.HasErrorPrefix(wrong.Get(t.Context(), "key").Err(), "WRONGPASS"))
}

func TestStallExecutesTimedOutRequestsOnResume(t *testing.T) {
	m := start(t, 1).Master(0)
	warm := m.Client(once, func(o *redis.Options) { o.ReadTimeout = 20 * time.Millisecond })
	require.NoError(t, warm.Ping(t.Context()).Err())

	m.Stall()
	m.Stall()
	m.ResetCommands()
	var timeout net.Error
	require.ErrorAs(t, warm.Set(t.Context(), "key", "late", 0).Err(), &timeout)
	require.True(t, timeout.Timeout())
	require.NoError(t, warm.Close())
	fresh, err := net.Dial("tcp", m.Addr())
	require.NoError(t, err, "a stalled master accepts")
	defer fresh.Close()
	require.Empty(t, m.Commands())
	require.Empty(t, m.Miniredis().Keys())

	m.Resume()
	m.Resume()
	require.Eventually(t, func() bool { return m.Miniredis().Exists("key") }, 10*time.Second, time.Millisecond)
}

func TestKillWhileStalledLosesWaitingRequests(t *testing.T) {
	m := start(t, 1).Master(0)
	c := m.Client(once)
	require.NoError(t, c.Ping(t.Context()).Err())
	m.Stall()
	set := make(chan error, 1)
	go func() { set <- c.Set(t.Context(), "key", "lost", 0).Err() }()
	m.Kill()
	require.Error(t, <-set)
	require.NoError(t, m.Restart())
	require.NoError(t, c.Ping(t.Context()).Err(), "a restart ends the stall")
	require.Empty(t, m.Miniredis().Keys())
}

// A command that waits in the server must not delay Kill.
func TestKillEndsABlockingCommand(t *testing.T) {
	m := start(t, 1).Master(0)
	c := m.Client(once)
	require.NoError(t, c.Ping(t.Context()).Err())
	m.ResetCommands()
	popped := make(chan error, 1)
	go func() { popped <- c.BLPop(t.Context(), 0, "list").Err() }()
	require.Eventually(t, func() bool { return len(m.Commands()) > 0 }, 10*time.Second, time.Millisecond)
	m.Kill()
	require.Error(t, <-popped)

	// A command after the restart waits again.
	require.NoError(t, m.Restart())
	go func() { popped <- c.BLPop(t.Context(), 0, "list").Err() }()
	require.NoError(t, m.Client().RPush(t.Context(), "list", "x").Err())
	require.NoError(t, <-popped)
}

func TestPublishReachesSubscribersAndKillEndsThem(t *testing.T) {
	m := start(t, 1).Master(0)
	sub := m.Client().Subscribe(t.Context(), "channel")
	defer sub.Close()
	_, err := sub.Receive(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), m.Client().Publish(t.Context(), "channel", "hello").Val())
	message, err := sub.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hello", message.Payload)
	m.Kill()
	_, err = sub.Receive(t.Context())
	require.Error(t, err)
}

// All faults at once, for the race detector and for deadlocks.
func TestFaultsUnderLoad(t *testing.T) {
	ms := start(t, 3)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for _, c := range ms.Clients() {
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_ = c.Incr(t.Context(), "n").Err()
					}
				}
			})
		}
	}
	var faults sync.WaitGroup
	for i, m := range ms.All() {
		faults.Go(func() {
			for round := range 5 {
				m.Delay(time.Duration(round)*100*time.Microsecond, 50*time.Microsecond)
				m.LoseReplies(1)
				m.LoseRequests(1)
				m.Stall()
				_ = m.Commands()
				m.Resume()
				if (round+i)%2 == 0 {
					m.Stall()
					m.Kill()
					_ = m.Restart()
				} else {
					_ = m.RestartEmpty()
				}
				m.ResetCommands()
			}
		})
	}
	faults.Wait()
	close(stop)
	wg.Wait()
}

func TestCloseIsFinal(t *testing.T) {
	defer goleak.VerifyNone(t)
	ms, err := inmemory.New(2)
	require.NoError(t, err)
	c := ms.Clients()[0]
	ms.Master(1).Stall()
	require.NoError(t, ms.Master(0).Client().Close(), "the caller may close a client too")
	require.NoError(t, c.Ping(t.Context()).Err())
	require.NoError(t, ms.Close())
	require.NoError(t, ms.Close())
	require.ErrorIs(t, c.Ping(t.Context()).Err(), redis.ErrClosed)
	require.ErrorIs(t, ms.Restart(0, 1), net.ErrClosed)
}
