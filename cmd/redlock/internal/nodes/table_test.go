package nodes

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
)

func TestATableHasRoomForEveryAddress(t *testing.T) {
	for _, addr := range []string{
		"h:1",
		"192.168.100.100:65535",
		"redis-a.locks.eu-central-1.compute.example.internal:6379",
		"/srv/" + strings.Repeat("deep/", 40) + "redis.sock",
		"[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:6379",
	} {
		m := newMaster(addr, answers{
			roundTrip: 12345 * time.Millisecond, clock: &clockReading{cli.Micros(-9999 * time.Millisecond), cli.Micros(999 * time.Millisecond)},
			info: map[string]string{
				"role": "master", "valkey_version": "8.10.12", "run_id": strings.Repeat("f", 40), "uptime_in_seconds": "99999999",
				"aof_enabled": "1", "maxmemory": "1100000000000", "maxmemory_policy": "volatile-random",
			},
			config: map[string]string{"appendfsync": "everysec", "save": "3600 1"},
		}, time.Second)
		m.State, m.Quarantine = "quarantine", cli.Micros(1000*time.Hour)
		for _, cols := range [][]column{healthColumns(), settingColumns()} {
			table := masterTable([]*master{m}, cols).Show(false)
			clitest.AssertFits(t, table)
			var parts string
			for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
				parts += strings.Fields(line)[0]
			}
			assert.Equal(t, addr, parts)
		}
	}
}

func TestCells(t *testing.T) {
	a := answers{info: map[string]string{"uptime_in_seconds": "90061", "maxmemory": "0", "aof_enabled": "1"}, config: map[string]string{"appendfsync": "always", "save": ""}}
	m := newMaster("h:1", a, time.Second)
	assert.Equal(t, []string{"1d1h", "no limit", "always", "no"}, []string{uptimeCell(m), memoryCell(m), aofCell(m), saveCell(m)})
	nobody := newMaster("h:1", answers{}, time.Second)
	for _, c := range append(healthColumns()[1:], settingColumns()...) {
		assert.Empty(t, c.cell(nobody), c.head)
	}
	for want, off := range map[string]time.Duration{
		"+0.0±0.1": -40 * time.Microsecond,
		"-0.1±0.1": -60 * time.Microsecond,
		"+1235±1":  1234500 * time.Microsecond,
		"+10 s":    10 * time.Second,
		"-3600 s":  -time.Hour,
	} {
		m.Clock = &clockReading{cli.Micros(off), cli.Micros(30 * time.Microsecond)}
		assert.Equal(t, want, clockCell(m))
	}
	for want, n := range map[string]int64{"12 B": 12, "1 KB": 1024, "1.5 MB": 3 << 19, "256 MB": 256 << 20, "2 GB": 2 << 30, "8 EB": 1<<63 - 1} {
		assert.Equal(t, want, size(n))
	}
}

// A flaw of all five masters is shown once.
func TestWhatIsWrongEverywhereIsSaidOnce(t *testing.T) {
	var masters []*master
	for i := range 5 {
		a := answers{roundTrip: 1, clock: &clockReading{}, info: map[string]string{"role": "master", "aof_enabled": "0", "run_id": fmt.Sprint(i)}}
		if i == 4 {
			a.info["maxmemory_policy"] = "allkeys-lru"
		}
		masters = append(masters, newMaster(fmt.Sprintf("10.0.0.%d:6379", i+1), a, time.Second))
	}
	var out strings.Builder
	require.NoError(t, newHealth(masters, 0, 0).print(&out, false))
	assert.Equal(t, 1, strings.Count(out.String(), "memory: all 5 masters\n"))
	assert.Equal(t, 1, strings.Count(out.String(), "eviction: 10.0.0.5:6379\n"))
	assert.Contains(t, out.String(), "\n   5 of 5 masters can vote, 3 needed.\n")
	assert.Contains(t, out.String(), "? is what")
	clitest.AssertFits(t, out.String())
}

func TestWhoDoesNotAnswerMayStillBeAsked(t *testing.T) {
	h := newHealth([]*master{newMaster("h:1", answers{err: errors.New("gone")}, time.Second)}, 0, 0)
	var out strings.Builder
	require.NoError(t, h.print(&out, true))
	assert.NotContains(t, out.String(), "? is what", "nobody refused to answer")
	assert.NotContains(t, out.String(), "can vote", "that is the error's to say")
	assert.Contains(t, out.String(), "\x1b[31munreachable\x1b[0m")
	assert.Contains(t, out.String(), "\x1b[33munreachable\x1b[0m: h:1\n")
}
