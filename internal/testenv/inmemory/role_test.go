package inmemory_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

const (
	readonly = "-READONLY You can't write against a read only replica.\r\n"
	write    = "redis.call('get', KEYS[1]) return redis.call('set', KEYS[1], ARGV[1])"
	read     = "return redis.call('get', KEYS[1])"
)

func TestDemotedMasterRefusesWritesOnOldConnections(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		c := open(t, m)
		require.Equal(t, "+OK\r\n", c.do("SET", "key", "value", "PX", "3600000"))
		loaded := strings.Split(c.do("SCRIPT", "LOAD", write), "\r\n")[1]

		m.Demote()
		m.Demote()
		for _, command := range [][]string{
			{"SET", "key", "other"}, {"set", "key", "other", "NX", "PX", "1000"}, {"DEL", "key"}, {"UNLINK", "key"},
			{"PEXPIRE", "key", "1"}, {"PERSIST", "key"}, {"INCR", "n"}, {"GETDEL", "key"}, {"GETEX", "key"}, {"HSET", "h", "f", "v"},
			{"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"}, {"BLPOP", "list", "0"}, {"RENAME", "key", "k"}, {"FLUSHALL"}, {"SWAPDB", "0", "1"},
			{"EVAL", write, "1", "key", "other"}, {"EVALSHA", loaded, "1", "key", "other"},
			{"EVAL", "return redis.pcall('del', KEYS[1])", "1", "key"},
		} {
			require.Equal(t, readonly, c.do(command...), command)
		}
		for _, tt := range []struct {
			reply   string
			command []string
		}{
			{"$5\r\nvalue\r\n", []string{"GET", "key"}},
			{"$5\r\nvalue\r\n", []string{"EVAL", read, "1", "key"}},
			{"$5\r\nvalue\r\n", []string{"EVAL_RO", read, "1", "key"}},
			{"-NOSCRIPT No matching script. Please use EVAL.\r\n", []string{"EVALSHA", strings.Repeat("0", 40), "0"}},
			{"-ERR value is not an integer or out of range\r\n", []string{"GETRANGE", "key", "a", "b"}},
			{"-ERR value is not an integer or out of range\r\n", []string{"SELECT", "x"}},
			{":0\r\n", []string{"PUBLISH", "a", "b"}},
			{"+PONG\r\n", []string{"PING"}},
			{"+OK\r\n", []string{"WATCH", "key"}},
			{"+OK\r\n", []string{"UNWATCH"}},
		} {
			require.Equal(t, tt.reply, c.do(tt.command...), tt.command)
		}
		require.Contains(t, c.do("NOSUCH", "key"), "-ERR unknown command")
		require.Contains(t, c.do("HELLO", "2"), "role\r\n$7\r\nreplica\r\n")
		require.Equal(t, []string{"key"}, m.Miniredis().Keys())

		m.Promote()
		require.Contains(t, c.do("HELLO", "2"), "role\r\n$6\r\nmaster\r\n")
		require.Equal(t, "$-1\r\n", c.do("SET", "key", "other", "NX"), "the key has outlived both")
		require.Equal(t, "+OK\r\n", c.do("EVALSHA", loaded, "1", "key", "other"))
		require.Equal(t, "$5\r\nother\r\n", c.do("GET", "key"))
	})
}

// redis-server 7.0.15 does the same: it refuses the queued command.
func TestTransactionsOfADemotedMaster(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		c := open(t, m)
		m.Demote()
		require.Equal(t, "+OK\r\n", c.do("MULTI"))
		require.Equal(t, readonly, c.do("SET", "key", "value"))
		require.Equal(t, "+QUEUED\r\n", c.do("GET", "key"))
		require.Contains(t, c.do("EXEC"), "-EXECABORT")
		require.Equal(t, "*1\r\n$-1\r\n", transaction(c, "GET", "key"))
		require.Equal(t, "*1\r\n"+readonly, transaction(c, "EVAL", write, "1", "key", "value"))
		require.Empty(t, m.Miniredis().Keys())
		require.Equal(t, "slave", roleIn(transaction(c, "INFO", "replication")))
	})
}

func roleIn(info string) string {
	_, role, _ := strings.Cut(info, "role:")
	role, _, _ = strings.Cut(role, "\r\n")
	return role
}

func TestARefusalComesAfterAllElse(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		m.SetPassword("s3cret")
		m.Demote()
		c := open(t, m)
		require.Equal(t, "-NOAUTH Authentication required.\r\n", c.do("SET", "key", "value"))
		require.Equal(t, "-NOAUTH Authentication required.\r\n", c.do("EVAL", write, "1", "key", "value"))
		require.Equal(t, "+OK\r\n", c.do("AUTH", "s3cret"))
		m.Miniredis().SetError("LOADING")
		require.Equal(t, "-LOADING\r\n", c.do("SET", "key", "value"))
		m.Miniredis().SetError("")
		var asked []string
		m.Miniredis().Server().SetPreHook(func(_ *server.Peer, name string, _ ...string) bool {
			asked = append(asked, name)
			return false
		})
		require.Equal(t, readonly, c.do("SET", "key", "value"))
		require.Equal(t, readonly, c.do("EVAL", write, "1", "key", "value"))
		require.Equal(t, []string{"GETRANGE", "EVAL_RO", "GET"}, asked)
	})
}

func TestRefusalsAreLoggedAndObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		m.Demote()
		var seen []inmemory.Exchange
		m.Observe(func(x inmemory.Exchange) { seen = append(seen, x) })
		c := open(t, m)
		commands := [][]string{{"SET", "key", "value"}, {"EVAL", write, "1", "key", "value"}}
		for i, command := range commands {
			require.Equal(t, readonly, c.do(command...))
			require.Equal(t, inmemory.Exchange{Command: command, Reply: []byte(readonly)}, seen[i])
		}
		require.Equal(t, commands, m.Commands())
		m.Observe(nil)
	})
}

// go-redis distinguishes READONLY from other errors, and closes the connection.
func TestClientsOfADemotedMaster(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		for _, resp := range []int{2, 3} {
			c := m.Client(once, protocol(resp))
			require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
			m.Demote()
			require.True(t, redis.HasErrorPrefix(c.Set(t.Context(), "key", "other", 0).Err(), "READONLY"))
			require.True(t, redis.HasErrorPrefix(c.Eval(t.Context(), write, []string{"key"}, "other").Err(), "READONLY"))
			require.Equal(t, "value", c.Get(t.Context(), "key").Val())
			require.Equal(t, "slave", ask(t, c).role)
			m.Promote()
			require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
		}
	})
}

func TestIdentityOfTheDemotedAndPromoted(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		master := ask(t, c)
		m.Promote()
		require.Equal(t, master, ask(t, c), "it is one")

		m.Demote()
		replica := ask(t, c)
		require.NotEqual(t, master.replID, replica.replID, "it is that of the other")
		require.Equal(t, self{master.runID, replica.replID, noID, "-1", "slave", master.uptime}, replica)
		m.Demote()
		require.Equal(t, replica, ask(t, c), "it is one")
		r := c.InfoMap(t.Context(), "replication").Val()["Replication"]
		require.Equal(t, []string{"192.0.2.1", "6379", "up"}, []string{r["master_host"], r["master_port"], r["master_link_status"]})

		m.Promote()
		promoted := ask(t, c)
		require.NotContains(t, []string{master.replID, replica.replID}, promoted.replID)
		require.Equal(t, self{master.runID, promoted.replID, replica.replID, "1", "master", master.uptime}, promoted)

		m.Demote()
		again := ask(t, c)
		require.Equal(t, self{master.runID, again.replID, noID, "-1", "slave", master.uptime}, again)
	})
}

func TestARestartEndsADemotion(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		for name, again := range map[string]func() error{"restart": m.Restart, "restart empty": m.RestartEmpty, "failover": m.FailOver} {
			for _, dead := range []bool{false, true} {
				if dead {
					m.Kill() // a dead server has no role to lose
				}
				m.Demote()
				require.NoError(t, again(), name)
				c := m.Client()
				require.Equal(t, "master", ask(t, c).role, name)
				require.NoError(t, c.Set(t.Context(), "key", name, 0).Err())
			}
		}
	})
}

func TestKeysExpireWhileDemoted(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		require.NoError(t, c.Set(t.Context(), "key", "value", time.Second).Err())
		m.Demote()
		time.Sleep(time.Second)
		require.ErrorIs(t, c.Get(t.Context(), "key").Err(), redis.Nil)
	})
}

// A command that waits during a stall is executed in the role that the server resumes with.
func TestDemotionDuringAStall(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := open(t, m)
		m.Stall()
		c.send("SET", "key", "value")
		synctest.Wait()
		m.Demote()
		m.Resume()
		require.Equal(t, readonly, c.receive())
		m.Stall()
		c.send("SET", "key", "value")
		synctest.Wait()
		m.Promote()
		m.Resume()
		require.Equal(t, "+OK\r\n", c.receive())
	})
}

// Whatever happens at the same time, each reply is one of the two possible ones.
func TestRolesUnderLoad(t *testing.T) {
	m := start(t, 1).Master(0)
	var wg sync.WaitGroup
	for i := range 4 {
		c := m.Client(protocol(2 + i%2))
		wg.Go(func() {
			for range 200 {
				err := c.Set(t.Context(), "key", "value", time.Hour).Err()
				if err != nil && !redis.HasErrorPrefix(err, "READONLY") {
					t.Error(err)
				}
				info, err := c.InfoMap(t.Context(), "server", "replication").Result()
				if role := info["Replication"]["role"]; err != nil || role != "master" && role != "slave" || len(info["Server"]["run_id"]) != 40 {
					t.Error(err, info)
				}
			}
		})
	}
	c := m.Client()
	for range 200 {
		m.Demote()
		require.Equal(t, "slave", ask(t, c).role)
		m.JumpClock(time.Second)
		m.Promote()
	}
	wg.Wait()
}
