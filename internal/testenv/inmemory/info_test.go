package inmemory_test

import (
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

const noID = "0000000000000000000000000000000000000000"

// self is the part of INFO that identifies a server.
type self struct {
	runID, replID, replID2, secondOffset, role string
	uptime                                     string // in seconds
}

func ask(t *testing.T, c redis.Cmdable) self {
	t.Helper()
	info, err := c.InfoMap(t.Context(), "server", "replication").Result()
	require.NoError(t, err)
	s, r := info["Server"], info["Replication"]
	return self{s["run_id"], r["master_replid"], r["master_replid2"], r["second_repl_offset"], r["role"], s["uptime_in_seconds"]}
}

func protocol(of int) func(*redis.Options) {
	return func(o *redis.Options) { o.Protocol = of }
}

func TestInfoOfANewMaster(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		_, port, err := net.SplitHostPort(m.Addr())
		require.NoError(t, err)
		for _, resp := range []int{2, 3} {
			c := m.Client(protocol(resp))
			info, err := c.InfoMap(t.Context(), "server", "replication").Result()
			require.NoError(t, err)
			s, r := info["Server"], info["Replication"]
			for _, id := range []string{s["run_id"], r["master_replid"]} {
				require.Regexp(t, regexp.MustCompile("^[0-9a-f]{40}$"), id)
			}
			require.NotEqual(t, s["run_id"], r["master_replid"])
			require.Regexp(t, `^864\d\d$`, s["uptime_in_seconds"], "real time may have gone on")
			require.Equal(t, map[string]map[string]string{
				"Server": {
					"redis_version": "7.0.15", "redis_mode": "standalone", "process_id": "1", "run_id": s["run_id"],
					"tcp_port": port, "uptime_in_seconds": s["uptime_in_seconds"], "uptime_in_days": "1",
				},
				"Replication": {
					"role": "master", "connected_slaves": "0", "master_failover_state": "no-failover",
					"master_replid": r["master_replid"], "master_replid2": noID,
					"master_repl_offset": "0", "second_repl_offset": "-1",
				},
			}, info)
		}
	})
}

func TestInfoTellsServersApart(t *testing.T) {
	seen := map[string]bool{}
	for _, ms := range []*inmemory.Masters{start(t, 3), inmemory.Start(t, 2)} {
		for _, c := range ms.Clients() {
			s := ask(t, c)
			seen[s.runID], seen[s.replID] = true, true
		}
	}
	require.Len(t, seen, 10)
}

// The expected replies are those of redis-server 7.0.15.
func TestInfoOnTheWire(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		c := open(t, m)
		reply := c.do("info", "Replication")
		require.Regexp(t, `^\$(\d+)\r\n# Replication\r\nrole:master\r\n`, reply)
		require.True(t, strings.HasSuffix(reply, "\r\nsecond_repl_offset:-1\r\n\r\n"), "%q", reply)
		require.Regexp(t, `^\*1\r\n\$\d+\r\n# Server\r\n`, transaction(c, "INFO", "server"))

		require.Equal(t, byte('%'), c.do("HELLO", "3")[0])
		require.Regexp(t, `^=\d+\r\ntxt:# Replication\r\nrole:master\r\n`, c.do("INFO", "replication"))
		require.Regexp(t, `^\*1\r\n=\d+\r\ntxt:# Server\r\n`, transaction(c, "INFO", "server"))
		require.Equal(t, byte('-'), c.do("HELLO", "4")[0])
		require.Equal(t, byte('='), c.do("INFO", "replication")[0])

		require.Equal(t, byte('*'), c.do("HELLO", "2")[0])
		require.Equal(t, reply, c.do("INFO", "REPLICATION"))
	})
}

func transaction(c *wire, command ...string) string {
	require.Equal(c.t, "+OK\r\n", c.do("MULTI"))
	require.Equal(c.t, "+QUEUED\r\n", c.do(command...))
	return c.do("EXEC")
}

func TestInfoSections(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := open(t, m)
		synctest.Wait() // for miniredis's own first connection to end
		for sections, want := range map[string][]string{
			"":                     {"# Server", "# Clients", "# Stats", "# Replication"},
			"default":              {"# Server", "# Clients", "# Stats", "# Replication"},
			"EVERYTHING":           {"# Server", "# Clients", "# Stats", "# Replication"},
			"replication server":   {"# Server", "# Replication"},
			"server SERVER server": {"# Server"},
			"memory server":        {"# Server"},
			"repl server":          {"# Server"},
			"stats":                {"# Stats"},
			"clients":              {"# Clients"},
			"replication all":      {"# Server", "# Clients", "# Stats", "# Replication"},
			"memory":               nil,
			"memory cpu":           nil,
		} {
			command := append([]string{"INFO"}, strings.Fields(sections)...)
			for _, reply := range []string{c.do(command...), transaction(c, command...)} {
				if want == nil {
					require.Contains(t, reply, "-section ("+sections+")")
					continue
				}
				require.Equal(t, want, regexp.MustCompile(`# \w+`).FindAllString(reply, -1), "INFO %s", sections)
				require.Equal(t, len(want)-1, strings.Count(reply, "\r\n\r\n#"), "between two sections is an empty line")
			}
		}
		require.Contains(t, c.do("INFO"), "connected_clients:1\r\n")
		require.Contains(t, c.do("INFO"), "total_connections_received:2\r\n", "with that one")
	})
}

func TestInfoNeedsThePassword(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		m.SetPassword("s3cret")
		c := open(t, m)
		for _, sections := range [][]string{{"server"}, {"server", "replication"}, {"a", "b", "c"}} {
			require.Equal(t, "-NOAUTH Authentication required.\r\n", c.do(append([]string{"INFO"}, sections...)...))
		}
		require.Equal(t, "-NOAUTH Authentication required.\r\n", c.do("INFO"))
		require.Equal(t, "+OK\r\n", c.do("AUTH", "s3cret"))
		require.Contains(t, c.do("INFO", "server"), "run_id:")
		require.Equal(t, "master", ask(t, m.Client()).role)
	})
}

func TestHooksAnswerInfo(t *testing.T) {
	const noperm = "NOPERM User default has no permissions to run the 'info' command"
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		var asked [][]string
		m.Miniredis().Server().SetPreHook(func(p *server.Peer, name string, args ...string) bool {
			if name == "INFO" {
				asked = append(asked, args)
				p.WriteError(noperm)
			}
			return name == "INFO"
		})
		c := open(t, m)
		for _, sections := range [][]string{{"server"}, {"server", "replication"}, nil} {
			require.Equal(t, "-"+noperm+"\r\n", c.do(append([]string{"INFO"}, sections...)...))
		}
		require.Equal(t, [][]string{{"server"}, {"server replication"}, {"default"}}, asked)

		m.Miniredis().SetError("LOADING")
		require.Equal(t, "-LOADING\r\n", c.do("INFO", "server"))
		m.Miniredis().SetError("")
		require.Contains(t, c.do("INFO", "server"), "run_id:")
	})
}

func TestInfoInThePipelineIsInItsPlace(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		for _, resp := range []int{2, 3} {
			var info *redis.StringCmd
			var before, after *redis.IntCmd
			require.NoError(t, m.Client().Del(t.Context(), "n").Err())
			_, err := m.Client(protocol(resp)).Pipelined(t.Context(), func(p redis.Pipeliner) error {
				before, info, after = p.Incr(t.Context(), "n"), p.Info(t.Context(), "server"), p.Incr(t.Context(), "n")
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, int64(1), before.Val())
			require.True(t, strings.HasPrefix(info.Val(), "# Server\r\nredis_version:"), info.Val())
			require.Equal(t, int64(2), after.Val())
		}
	})
}

func TestInfoIsLoggedAndObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		var seen []inmemory.Exchange
		m.Observe(func(x inmemory.Exchange) { seen = append(seen, x) })
		c := open(t, m)
		commands := [][]string{{"INFO"}, {"INFO", "server"}, {"INFO", "Replication", "SERVER"}}
		for i, command := range commands {
			reply := c.do(append([]string{"info"}, command[1:]...)...)
			require.Equal(t, inmemory.Exchange{Command: command, Reply: []byte(reply)}, seen[i])
		}
		require.Equal(t, commands, m.Commands())
		m.Observe(nil)
	})
}

// Faults apply to INFO as to other commands.
func TestInfoIsSubjectToFaults(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		m.Delay(20*time.Millisecond, 30*time.Millisecond)
		c := open(t, m)
		begin := time.Now()
		whole := c.do("INFO", "server")
		require.Equal(t, 50*time.Millisecond, time.Since(begin))
		m.Delay(0, 0)

		m.LoseReplies(1)
		c.send("INFO", "server")
		rest, err := io.ReadAll(c.r)
		require.NoError(t, err)
		require.Empty(t, rest)

		p := m.Path()
		var length int
		p.Tear(func(d faultlink.Direction, bytes int) int {
			if d == faultlink.ToServer {
				return bytes
			}
			length = bytes
			return bytes - 10
		})
		conn, err := p.Client().Options().Dialer(t.Context(), "tcp", m.Addr())
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n")
		require.NoError(t, err)
		torn, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, whole[:length-10], string(torn))
		require.Len(t, whole, length)
	})
}
