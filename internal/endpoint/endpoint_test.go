package endpoint_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/endpoint"
)

func TestAClientIsOneForALock(t *testing.T) {
	opt, err := endpoint.Options("redis://user:secret@host/3?max_retries=3&min_idle_conns=9", 7*time.Second)
	require.NoError(t, err)
	assert.Equal(t, []any{"tcp", "host:6379", "user", "secret", 3}, []any{opt.Network, opt.Addr, opt.Username, opt.Password, opt.DB})
	assert.True(t, opt.ContextTimeoutEnabled)
	assert.Equal(t, -1, opt.MaxRetries, "a SET must not be sent twice, whatever the URL says")
	assert.Equal(t, 1, opt.DialerRetries)
	assert.Zero(t, opt.MinIdleConns)
	assert.Equal(t, 2, opt.Protocol)
	assert.Equal(t, 7*time.Second, opt.DialTimeout)
	assert.Equal(t, 7*time.Second, opt.ReadTimeout)
}

func TestAURLsOwnPatienceComesFirst(t *testing.T) {
	opt, err := endpoint.Options("redis://host?dial_timeout=2s&read_timeout=3s&protocol=3", 7*time.Second)
	require.NoError(t, err)
	assert.Equal(t, 2*time.Second, opt.DialTimeout)
	assert.Equal(t, 3*time.Second, opt.ReadTimeout)
	assert.Equal(t, 3, opt.Protocol)
}

// The order of the rules matters: the error for each URL names the mistake that its user
// should correct first. No error quotes the URL.
func TestAnErrorIsForBehindTheURLsName(t *testing.T) {
	for url, want := range map[string]string{
		"":                            "is empty",
		"secret@host":                 "does not begin with redis://, rediss:// or unix://",
		"redis://:sec/ret@host":       "is not a URL (are special characters of the password percent-encoded?)",
		"redis://:12#secret@host":     "contains a #; in a password it is %23",
		"unix://:12/secret@/tmp/s":    "has no absolute socket path after the user (in a password / is %2F and @ is %40)",
		"unix://":                     "has no socket path",
		"redis://:secret@host:0":      "has a port that is not in [1, 65535]",
		"redis://:secret@host/secret": "has a path or query that is not understood (want /db and the options of redis.ParseURL)",
		"redis://:secret@host/-1":     "has a negative database number",
		"redis://host?pool_size=-1":   "has a pool_size that is not in [0, 65536]",
	} {
		_, err := endpoint.Options(url, time.Second)
		assert.EqualError(t, err, want, url)
	}
}

func TestAFailedDialReachesTheCommandAndNotStderr(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close()) // no server listens now

	said := make(chan string, 10)
	redis.SetLogger(log{said})
	opt, err := endpoint.Options("redis://"+listener.Addr().String(), 10*time.Second)
	require.NoError(t, err)
	client := redis.NewClient(opt)
	defer func() { assert.NoError(t, client.Close()) }()

	op := (*net.OpError)(nil)
	require.ErrorAs(t, client.Ping(context.Background()).Err(), &op)
	assert.Equal(t, "dial", op.Op)
	assert.Empty(t, said)
}

// log replaces go-redis' logger of the whole process, so no other dial may fail meanwhile.
type log struct{ said chan string }

func (l log) Printf(_ context.Context, format string, _ ...any) { l.said <- format }

// A failed TLS handshake counts as a failed dial, not as a server's answer to a command.
func TestWhatFailsBeforeACommandIsAFailedDial(t *testing.T) {
	dial := endpoint.Quietly(func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF })
	conn, err := dial(context.Background(), "tcp", "host:1")
	require.NoError(t, err)
	op := (*net.OpError)(nil)
	require.ErrorAs(t, endpoint.Failed(conn), &op)
	assert.Equal(t, "dial", op.Op)
	assert.ErrorIs(t, op, io.EOF)
	for _, broken := range []func([]byte) (int, error){conn.Read, conn.Write} {
		_, err := broken(nil)
		assert.ErrorIs(t, err, io.EOF)
	}
}

func TestADialThatWorksIsLeftAlone(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { assert.NoError(t, errors.Join(ours.Close(), theirs.Close())) }()
	conn, err := endpoint.Quietly(func(context.Context, string, string) (net.Conn, error) { return ours, nil })(context.Background(), "tcp", "host:1")
	require.NoError(t, err)
	assert.Same(t, ours, conn)
	assert.NoError(t, endpoint.Failed(conn))
}
