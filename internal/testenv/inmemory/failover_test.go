package inmemory_test

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func TestFailOverToOneThatHadNotHeard(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		m.SetPassword("s3cret") // FailOver must work with a password
		c, addr := m.Client(), m.Addr()
		require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
		sha := c.ScriptLoad(t.Context(), "return 7").Val()
		before := ask(t, c)
		old := open(t, m)

		require.NoError(t, m.FailOver())
		_, err := old.conn.Read(make([]byte, 1))
		require.Error(t, err, "a connection outlived its server")
		require.Equal(t, addr, m.Addr())
		after := ask(t, c)
		require.NotEqual(t, before.runID, after.runID)
		require.NotEqual(t, before.replID, after.replID)
		require.Equal(t, self{after.runID, after.replID, before.replID, "1", "master", after.uptime}, after)
		uptime, err := strconv.Atoi(after.uptime)
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Duration(uptime)*time.Second, inmemory.InitialUptime)
		require.ErrorIs(t, c.Get(t.Context(), "key").Err(), redis.Nil)
		require.True(t, redis.HasErrorPrefix(c.EvalSha(t.Context(), sha, nil).Err(), "NOSCRIPT"))
	})
}

func TestFailOverOfADeadMaster(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		before := ask(t, c)
		m.Kill()
		time.Sleep(time.Hour)
		require.NoError(t, m.FailOver())
		after := ask(t, c)
		require.Equal(t, before.replID, after.replID2)
		require.Equal(t, before.uptime, after.uptime, "the other's own")
	})
}

// The new server continues the history that the demoted one was following.
func TestFailOverOfADemotedMaster(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		m.Demote()
		before := ask(t, c)
		require.NoError(t, m.FailOver())
		require.Equal(t, before.replID, ask(t, c).replID2)
	})
}

func TestFailOverAfterClose(t *testing.T) {
	ms := start(t, 1)
	require.NoError(t, ms.Close())
	require.ErrorIs(t, ms.Master(0).FailOver(), net.ErrClosed)
}
