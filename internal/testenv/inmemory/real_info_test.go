package inmemory_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

// A redis-server prints every line that masters print, in the same order, through each change
// of its role. Values other than ids, numbers and addresses are equal.
func TestInfoIsThatOfARedisServer(t *testing.T) {
	servers := redisserver.Start(t, 2)
	real, other := servers[0].Client(), servers[1]
	m := inmemory.Start(t, 1).Master(0)
	c := m.Client()
	opts, err := redis.ParseURL(other.URL())
	require.NoError(t, err)
	host, port := "127.0.0.1", regexp.MustCompile(`\d+$`).FindString(opts.Addr)

	same := func() {
		t.Helper()
		rest := figures(real.Info(t.Context(), "server", "replication").Val())
		for _, line := range figures(c.Info(t.Context(), "server", "replication").Val()) {
			for len(rest) > 0 && rest[0] != line {
				rest = rest[1:]
			}
			require.NotEmpty(t, rest, "%q is not there, or not in its place", line)
		}
	}
	same()
	require.NoError(t, real.Do(t.Context(), "REPLICAOF", host, port).Err())
	require.Eventually(t, func() bool {
		return real.InfoMap(t.Context(), "replication").Item("Replication", "master_link_status") == "up"
	}, time.Minute, 10*time.Millisecond)
	m.Demote()
	same()
	refused := func(c *redis.Client) []bool {
		return []bool{
			redis.HasErrorPrefix(c.Set(t.Context(), "key", "value", 0).Err(), "READONLY"),
			redis.HasErrorPrefix(c.Eval(t.Context(), write, []string{"key"}, "value").Err(), "READONLY"),
			redis.HasErrorPrefix(c.Eval(t.Context(), read, []string{"key"}).Err(), "READONLY"),
		}
	}
	require.Equal(t, refused(real), refused(c))
	require.NoError(t, real.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	m.Promote()
	same()
}

// figures returns the lines of INFO with N for values that differ between any two servers.
func figures(info string) []string {
	info = regexp.MustCompile(`(?m)^(redis_version|master_host):.*\r`).ReplaceAllString(info, "$1:N\r")
	info = regexp.MustCompile(`[0-9a-f]{40}`).ReplaceAllStringFunc(info, func(id string) string {
		if id == noID {
			return "none"
		}
		return "some"
	})
	info = regexp.MustCompile(`:\d{1,20}\r`).ReplaceAllString(info, ":N\r")
	return regexp.MustCompile("[^\r\n]+").FindAllString(info, -1)
}
