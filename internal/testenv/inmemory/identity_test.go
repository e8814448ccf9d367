package inmemory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func TestUptimeIsVirtual(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		initial := int(inmemory.InitialUptime / time.Second)
		up := func(seconds int) {
			t.Helper()
			require.Equal(t, fmt.Sprint(seconds), ask(t, c).uptime)
		}
		up(initial)
		time.Sleep(time.Second - time.Nanosecond)
		up(initial)
		time.Sleep(time.Nanosecond)
		up(initial + 1)
		time.Sleep(23*time.Hour + 59*time.Minute + 58*time.Second)
		require.Equal(t, "1", c.InfoMap(t.Context(), "server").Item("Server", "uptime_in_days"))
		time.Sleep(time.Second)
		require.Equal(t, "2", c.InfoMap(t.Context(), "server").Item("Server", "uptime_in_days"))

		// Redis subtracts whole seconds: a server that started in the middle of a second has
		// an uptime of 1 after half a second.
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, m.Restart())
		up(0)
		time.Sleep(500 * time.Millisecond)
		up(1)
		m.Stall()
		time.Sleep(time.Minute)
		m.Resume()
		up(61)
		m.Kill()
		time.Sleep(time.Minute)
		require.NoError(t, m.RestartEmpty())
		up(0)
		time.Sleep(time.Hour)
		up(3600)
	})
}

func TestUptimeJumpsWithTheClock(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		require.NoError(t, m.Restart())
		c := m.Client()
		m.JumpClock(time.Hour)
		require.Equal(t, "3600", ask(t, c).uptime)
		m.JumpClock(-2 * time.Hour)
		require.Equal(t, "-3600", ask(t, c).uptime)
		require.NoError(t, m.Restart())
		require.Equal(t, "0", ask(t, c).uptime)
	})
}

func TestRestartsAreNewServers(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		seen := map[string]bool{}
		for i, restart := range []func() error{m.Restart, m.RestartEmpty, func() error { m.Kill(); return m.Restart() }} {
			before := ask(t, c)
			require.NoError(t, restart())
			after := ask(t, c)
			seen[before.runID], seen[before.replID], seen[after.runID], seen[after.replID] = true, true, true, true
			require.Len(t, seen, 4+2*i)
			require.Equal(t, noID, after.replID2)
			require.Equal(t, "-1", after.secondOffset)
			require.Equal(t, "master", after.role)
			require.Less(t, len(after.uptime), len("86400"), after.uptime)
		}
	})
}

func TestIdentityOutlivesConnectionsAndStalls(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := p.Client()
		before := ask(t, c)
		same := func() {
			t.Helper()
			after := ask(t, c)
			after.uptime = before.uptime // real time may have passed
			require.Equal(t, before, after)
		}
		p.Break()
		same()
		m.Stall()
		m.Resume()
		same()
		m.LoseReplies(1)
		same()
		m.Miniredis().FlushAll()
		require.NoError(t, m.FlushScripts())
		same()
	})
}
