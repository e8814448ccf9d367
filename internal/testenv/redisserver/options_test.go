package redisserver

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// reached connects with the URL alone, and with the client made by the server.
func reached(t *testing.T, s *Server) {
	t.Helper()
	require.NoError(t, s.Client().Set(ctx, "k", "v", 0).Err())
	options, err := redis.ParseURL(s.URL())
	require.NoError(t, err)
	if options.TLSConfig != nil {
		options.TLSConfig = s.TLSConfig()
	}
	c := redis.NewClient(options)
	defer c.Close()
	require.Equal(t, "v", c.Get(ctx, "k").Val())
	require.NoError(t, s.Restart())
	require.ErrorIs(t, c.Get(ctx, "k").Err(), redis.Nil)
}

func TestRequirePass(t *testing.T) {
	s := Start(t, 1, RequirePass(`p "w\ é`))[0]
	reached(t, s)
	wrong := s.Client(func(o *redis.Options) { o.Password = "wrong" })
	require.ErrorContains(t, wrong.Ping(ctx).Err(), "WRONGPASS")
	none := s.Client(func(o *redis.Options) { o.Password = "" })
	require.ErrorContains(t, none.Ping(ctx).Err(), "NOAUTH")
}

func TestACL(t *testing.T) {
	s := Start(t, 1, ACL("user default off", "alice on >secret ~lock:* +set +hello"))[0]
	alice := s.Client(func(o *redis.Options) { o.Username, o.Password = "alice", "secret" })
	require.NoError(t, alice.Set(ctx, "lock:a", "v", 0).Err())
	require.ErrorContains(t, alice.Set(ctx, "other", "v", 0).Err(), "NOPERM")
	require.ErrorContains(t, alice.Get(ctx, "lock:a").Err(), "NOPERM")
	require.Error(t, s.Client().Ping(ctx).Err(), "the default user is off")
}

func TestUnixSocket(t *testing.T) {
	servers := Start(t, 2, UnixSocket(), RequirePass("secret"))
	require.NotEqual(t, servers[0].Addr(), servers[1].Addr())
	for _, s := range servers {
		require.Equal(t, "unix", s.Network())
		require.Zero(t, s.Port())
		info, err := os.Stat(s.Addr())
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSocket)
		reached(t, s)
	}
}

func TestTLS(t *testing.T) {
	servers := Start(t, 2, TLS())
	for _, s := range servers {
		reached(t, s)
		ca, err := os.ReadFile(s.CAFile())
		require.NoError(t, err)
		pool := x509.NewCertPool()
		require.True(t, pool.AppendCertsFromPEM(ca))
		byFile := s.Client(func(o *redis.Options) { o.TLSConfig = &tls.Config{RootCAs: pool} })
		require.NoError(t, byFile.Ping(ctx).Err())
		stranger := s.Client(func(o *redis.Options) { o.TLSConfig, o.DialerRetries, o.MaxRetries = &tls.Config{}, 1, -1 })
		var unknown x509.UnknownAuthorityError
		require.ErrorAs(t, stranger.Ping(ctx).Err(), &unknown)
		plain := s.Client(func(o *redis.Options) { o.TLSConfig, o.DialerRetries, o.MaxRetries = nil, 1, -1 })
		require.Error(t, plain.Ping(ctx).Err())
	}
}

func TestConfigWins(t *testing.T) {
	s := Start(t, 1, Config("appendonly yes", "appendfsync always"))[0]
	c := s.Client()
	require.NoError(t, c.Set(ctx, "k", "v", 0).Err())
	require.NoError(t, s.Restart())
	require.Equal(t, "v", c.Get(ctx, "k").Val())
}
