package inmemory_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestLoseRepliesExecutesAndCuts(t *testing.T) {
	m := start(t, 1).Master(0)
	m.LoseReplies(1)
	c := m.Client(once) // its handshake comes first and is not counted
	require.Error(t, c.Set(t.Context(), "key", "value", 0).Err())
	require.Equal(t, "value", c.Get(t.Context(), "key").Val())
}

// A default client sends a command again, and so meets its own key: case 5 of what broke other
// lock libraries.
func TestLoseRepliesAndARetryingClient(t *testing.T) {
	m := start(t, 1).Master(0)
	m.LoseReplies(1)
	won, err := m.Client().SetNX(t.Context(), "key", "mine", 0).Result()
	require.NoError(t, err)
	require.False(t, won)
	sets := 0
	for _, c := range m.Commands() {
		if strings.HasPrefix(c[0], "SET") {
			sets++
		}
	}
	require.Equal(t, 2, sets)
}

func TestLoseRepliesExecutesAWholePipeline(t *testing.T) {
	m := start(t, 1).Master(0)
	c := m.Client(once)
	require.NoError(t, c.Ping(t.Context()).Err())
	m.LoseReplies(1)
	_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range 100 {
			p.Incr(t.Context(), "n")
		}
		return nil
	})
	require.Error(t, err)
	require.Equal(t, "100", c.Get(t.Context(), "n").Val())
}

func TestLoseRequestsExecutesNothing(t *testing.T) {
	m := start(t, 1).Master(0)
	c := m.Client(once)
	m.LoseRequests(2)
	for range 2 {
		require.Error(t, c.Incr(t.Context(), "n").Err())
	}
	require.Equal(t, int64(1), c.Incr(t.Context(), "n").Val())

	m.LoseRequests(1)
	m.LoseReplies(1)
	require.Error(t, c.Incr(t.Context(), "n").Err())
	require.Error(t, c.Incr(t.Context(), "n").Err())
	require.Equal(t, "2", c.Get(t.Context(), "n").Val(), "requests are lost first")

	m.LoseRequests(5)
	m.LoseRequests(0)
	require.NoError(t, c.Ping(t.Context()).Err())
}
