package redisserver

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

var errRole = errors.New("role not taken yet")

// requireRoles asks the master and the replica themselves.
func requireRoles(t *testing.T, s *Sentinel, master, replica *Server) {
	t.Helper()
	roles := map[*redis.Client]string{master.Client(): "master", replica.Client(): "slave"}
	require.NoError(t, poll(startTimeout, 20*time.Millisecond, func() error {
		for client, role := range roles {
			info := client.InfoMap(ctx, "replication")
			if err := info.Err(); err != nil {
				return err
			}
			if info.Item("Replication", "role") != role {
				return errRole
			}
		}
		return nil
	}))
	requireMaster(t, s, master, replica)
}

// requireMaster asks the Sentinel.
func requireMaster(t *testing.T, s *Sentinel, master, replica *Server) {
	t.Helper()
	got, err := s.Master()
	require.NoError(t, err)
	require.Equal(t, master.Addr(), got.Addr(), s.process.log)
	got, err = s.Replica()
	require.NoError(t, err)
	require.Equal(t, replica.Addr(), got.Addr(), s.process.log)
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, RequirePass(`a "secret"`))
	a, err := s.Master()
	require.NoError(t, err)
	b, err := s.Replica()
	require.NoError(t, err)
	requireRoles(t, s, a, b)

	client := s.Client()
	require.NoError(t, client.Set(ctx, "k", "v", 0).Err())
	require.Equal(t, int64(1), client.Wait(ctx, 1, startTimeout).Val(), "replicated")

	require.NoError(t, s.Failover())
	requireRoles(t, s, b, a)
	require.Equal(t, "v", s.Client().Get(ctx, "k").Val())
}

func TestSentinelPromotesWhenTheMasterDies(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, Config("min-replicas-max-lag 5"))
	a, err := s.Master()
	require.NoError(t, err)
	b, err := s.Replica()
	require.NoError(t, err)
	require.NoError(t, s.AwaitFailover(func() error { a.Kill(); return nil }))
	requireMaster(t, s, b, a)
	require.NoError(t, s.Client().Set(ctx, "k", "v", 0).Err())

	require.NoError(t, a.Restart()) // as a master; the Sentinel makes it a replica
	requireRoles(t, s, b, a)
}

func TestSentinelOptions(t *testing.T) {
	for _, opt := range []Option{TLS(), UnixSocket(), ACL("alice on")} {
		_, err := LaunchSentinel(opt)
		require.ErrorContains(t, err, "RequirePass and Config only")
	}
}
