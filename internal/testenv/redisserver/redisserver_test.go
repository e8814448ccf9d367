package redisserver

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	redis.SetLogger(&logging.VoidLogger{}) // go-redis's own logger writes to stderr
	goleak.VerifyTestMain(m)
}

// childEnv makes the test binary start a server, print its address and directory, and wait to
// be killed.
const childEnv = "REDISSERVER_TEST_CHILD"

func child() {
	servers, err := Launch(1)
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString(servers[0].Addr() + " " + servers[0].Dir() + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// needServer skips a test that does not call Start itself with -short, and only then.
func needServer(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs redis-server")
	}
}

// recorder is a TB that the test itself ends.
type recorder struct {
	cleanups []func()
	fatal    string
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Fatalf(format string, args ...any) { r.fatal = fmt.Sprintf(format, args...) }

func (r *recorder) Skip(...any) {}

func (r *recorder) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

var ctx = context.Background()

func TestStart(t *testing.T) {
	needServer(t)
	var tb recorder
	servers := Start(&tb, 5)
	require.Empty(t, tb.fatal)
	require.Len(t, servers, 5)

	first, last := port.Ephemeral()
	ids := map[string]bool{}
	for _, s := range servers {
		require.False(t, s.Port() >= first && s.Port() <= last, "port %d", s.Port())
		require.Equal(t, fmt.Sprintf("127.0.0.1:%d", s.Port()), s.Addr())
		require.Equal(t, "redis://"+s.Addr(), s.URL())
		require.DirExists(t, s.Dir())
		require.NotZero(t, s.PID())
		require.Nil(t, s.TLSConfig())
		require.Empty(t, s.CAFile())
		require.Contains(t, s.Log(), "eady to accept connections")

		c := s.Client()
		for name, value := range map[string]string{"save": "", "appendonly": "no", "maxmemory-policy": "noeviction"} {
			got, err := c.ConfigGet(ctx, name).Result()
			require.NoError(t, err)
			require.Equal(t, map[string]string{name: value}, got)
		}
		info := c.InfoMap(ctx, "server", "replication").Item
		id := info("Server", "run_id")
		require.NotEmpty(t, id)
		require.False(t, ids[id], "one server twice")
		ids[id] = true
		require.Equal(t, "master", info("Replication", "role"))
	}

	tb.end()
	for _, s := range servers {
		require.Zero(t, s.PID())
		_, err := os.Stat(s.Dir())
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
}

func TestStartFails(t *testing.T) {
	for _, n := range []int{0, -1} {
		var tb recorder
		require.Nil(t, Start(&tb, n))
		require.Contains(t, tb.fatal, "need at least 1")
		require.Empty(t, tb.cleanups)
	}
}

func TestMissingServerIsOneLine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	starts := map[string]func(TB){
		"masters":  func(tb TB) { Start(tb, 3) },
		"cluster":  func(tb TB) { StartCluster(tb, 1) },
		"sentinel": func(tb TB) { StartSentinel(tb) },
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			var tb recorder
			start(&tb)
			require.Contains(t, tb.fatal, "apt-get install redis-server")
			require.Contains(t, tb.fatal, "brew install redis")
			require.NotContains(t, tb.fatal, "\n")
		})
	}
}

func TestBadConfigFailsWithTheServersWords(t *testing.T) {
	needServer(t)
	_, err := Launch(2, Config("no-such-setting yes"))
	require.ErrorContains(t, err, "no-such-setting")
}

func TestPoll(t *testing.T) {
	tries := 0
	err := poll(time.Minute, time.Microsecond, func() error {
		if tries++; tries < 3 {
			return fs.ErrInvalid
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 3, tries)

	err = poll(time.Microsecond, time.Minute, func() error { return fs.ErrInvalid })
	require.ErrorIs(t, err, fs.ErrInvalid)

	err = poll(time.Hour, time.Minute, func() error { return final{fs.ErrClosed} })
	require.ErrorIs(t, err, fs.ErrClosed)
}

func TestServerLog(t *testing.T) {
	l := newServerLog("Ready to")
	write := func(text string) {
		n, err := l.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	write("starting\n* rea")
	select {
	case <-l.ready:
		t.Fatal("ready too early")
	default:
	}
	write("dy TO go\nready to\npart")
	<-l.ready
	require.Equal(t, "starting\n* ready TO go\nready to\npart", l.String())
	write(strings.Repeat("\nx", tailLines+1))
	require.Equal(t, strings.Repeat("x\n", tailLines)+"x", l.String())
}
