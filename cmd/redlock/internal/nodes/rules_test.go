package nodes

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/redlock"
)

// reply is an error that a server sent.
type reply string

func (r reply) Error() string { return string(r) }
func (r reply) RedisError()   {}

var (
	soundInfo = map[string]string{
		"redis_version": "7.0.15", "run_id": "3fa91c2e00000000", "uptime_in_seconds": "90061", "role": "master",
		"aof_enabled": "1", "aof_last_write_status": "ok", "rdb_last_bgsave_status": "ok", "loading": "0",
		"maxmemory": "0", "used_memory": "900000", "maxmemory_policy": "noeviction", "cluster_enabled": "0",
	}
	soundConfig = map[string]string{
		"appendonly": "yes", "appendfsync": "always", "save": "", "stop-writes-on-bgsave-error": "yes",
		"timeout": "0", "min-replicas-to-write": "0", "min-replicas-max-lag": "10",
	}
)

// found returns the health of three masters. differ changes the answers of the first two, and run
// changes what a lock would find out about them.
func found(t *testing.T, guard time.Duration, differ func(a *answers), run func(m *master)) *health {
	t.Helper()
	var all []*master
	for i := range 3 {
		a := answers{roundTrip: time.Millisecond, clock: &clockReading{}, info: maps.Clone(soundInfo), config: maps.Clone(soundConfig)}
		a.info["run_id"] = fmt.Sprint(i) + a.info["run_id"]
		if i < 2 && differ != nil {
			differ(&a)
		}
		m := newMaster(fmt.Sprintf("10.0.0.%d:6379", i+1), a, time.Second)
		if i < 2 && run != nil {
			run(m)
		}
		all = append(all, m)
	}
	return newHealth(all, guard, 0)
}

func TestSoundMastersRaiseNoWarning(t *testing.T) {
	h := found(t, 0, nil, nil)
	assert.Empty(t, h.Warnings)
	assert.Equal(t, 3, h.Voting)
	assert.NoError(t, h.verdict())
}

func TestEachFlawHasItsWarning(t *testing.T) {
	info := func(pairs ...string) func(*answers) {
		return func(a *answers) {
			for i := 0; i < len(pairs); i += 2 {
				a.info[pairs[i]] = pairs[i+1]
			}
		}
	}
	config := func(pairs ...string) func(*answers) {
		return func(a *answers) {
			for i := 0; i < len(pairs); i += 2 {
				a.config[pairs[i]] = pairs[i+1]
			}
		}
	}
	fails := func(err error) func(*answers) { return func(a *answers) { *a = answers{err: err} } }
	for name, tc := range map[string]struct {
		differ func(*answers)
		run    func(*master)
		code   string
		bars   bool
		want   string
	}{
		"refused":       {fails(syscall.ECONNREFUSED), nil, "unreachable", true, "It cannot be reached: connection refused. Is"},
		"hung":          {fails(os.ErrDeadlineExceeded), nil, "unreachable", true, "does not answer within 1s"},
		"hangs up":      {fails(io.EOF), nil, "unreachable", true, "closes the connection"},
		"no password":   {fails(reply("NOAUTH Authentication required.")), nil, "password", true, "URL has none"},
		"bad password":  {fails(reply("WRONGPASS invalid username-password pair")), nil, "password", true, "refuses the user or the password"},
		"protected":     {fails(reply("DENIED Redis is running in protected mode because")), nil, "failing", true, "DENIED Redis is running in protected mode"},
		"database":      {fails(reply("NOPERM this user has no permissions to run the 'select' command")), nil, "rights", true, "'select'"},
		"no eval":       {nil, func(m *master) { m.unable = reply("NOPERM no permissions to run the 'eval' command") }, "rights", true, "'eval'"},
		"anything else": {nil, func(m *master) { m.unable = errors.New("out of order") }, "failing", true, "out of order"},
		"not counted":   {nil, func(m *master) { m.ineligible = errors.New("who knows") }, "failing", true, "who knows"},
		"loading":       {info("loading", "1"), nil, "loading", true, "is loading"},
		"still loading": {nil, func(m *master) { m.unable = reply("LOADING Redis is loading the dataset in memory") }, "loading", true, "is loading"},
		"replica":       {info("role", "slave", "master_host", "10.9.9.9", "master_port", "6380"), nil, "replica", true, "replica of 10.9.9.9:6380"},
		"cluster":       {info("cluster_enabled", "1"), nil, "cluster", true, "redis.ClusterClient"},
		"append fails":  {info("aof_last_write_status", "err"), nil, "writes", true, "append-only file"},
		"snapshot fails": {func(a *answers) {
			a.info["rdb_last_bgsave_status"], a.config["save"] = "err", "3600 1"
		}, nil, "writes", true, "snapshot failed"},
		"snapshot fails, unknown": {func(a *answers) { a.info["rdb_last_bgsave_status"], a.config = "err", nil }, nil, "writes", true, "snapshot failed"},
		"too few replicas": {func(a *answers) {
			a.info["min_slaves_good_slaves"], a.config["min-replicas-to-write"] = "1", "2"
		}, nil, "writes", true, "has 1 good replicas and min-replicas-to-write is 2"},
		"full":                      {info("maxmemory", "1048576", "used_memory", "1200000"), nil, "writes", true, "maxmemory 1 MB"},
		"no file":                   {info("aof_enabled", "0"), nil, "memory", false, "appendonly is no"},
		"no file, by CONFIG":        {func(a *answers) { a.info = nil; a.config["appendonly"] = "no" }, nil, "memory", false, "appendonly is no"},
		"a second of memory":        {config("appendfsync", "everysec"), nil, "memory", false, "appendfsync is everysec"},
		"evicts":                    {info("maxmemory_policy", "allkeys-lru", "maxmemory", "1048576"), nil, "eviction", false, "when the memory is full"},
		"evicts rather than refuse": {info("maxmemory_policy", "allkeys-lru", "maxmemory", "1048576", "used_memory", "1200000"), nil, "eviction", false, "when the memory is full"},
		"may evict":                 {info("maxmemory_policy", "volatile-ttl"), nil, "eviction", false, "as soon as somebody sets maxmemory"},
		"evicts, by CONFIG":         {func(a *answers) { a.info = nil; a.config["maxmemory-policy"] = "volatile-lru" }, nil, "eviction", false, "volatile-lru"},
		"ahead":                     {func(a *answers) { a.clock.Offset = cli.Micros(1500 * time.Millisecond) }, nil, "clock", false, "1.5s ahead of this host's"},
		"behind":                    {func(a *answers) { a.clock.Offset = cli.Micros(-time.Hour) }, nil, "clock", false, "1h0m0s behind this host's"},
		"hangs up on us":            {config("timeout", "5"), nil, "timeout", false, "timeout is 5"},
		"older than a script":       {info("redis_version", "6.0.16"), nil, "version", false, "Redis 6.0.16"},
	} {
		t.Run(name, func(t *testing.T) {
			h := found(t, 0, tc.differ, tc.run)
			require.Len(t, h.Warnings, 2, h.Warnings)
			for i, w := range h.Warnings {
				assert.Equal(t, tc.code, w.Code)
				assert.Equal(t, h.Nodes[i].Addr, w.Node)
				assert.Contains(t, w.Text, tc.want)
				assert.Regexp(t, `[.?]$`, w.Text)
				assert.NotContains(t, w.Text, "..")
			}
			if !tc.bars {
				assert.Equal(t, []string{stateOK, stateOK, stateOK}, states(h))
				assert.NoError(t, h.verdict())
				return
			}
			assert.Equal(t, []string{tc.code, tc.code, stateOK}, states(h))
			exit := (*cli.ExitError)(nil)
			require.ErrorAs(t, h.verdict(), &exit)
			assert.Equal(t, cli.ExitNoQuorum, exit.Code)
			assert.EqualError(t, exit, "no quorum: 1 of 3 masters can vote, 2 needed")
		})
	}
}

// A replica that is loading is still shown as a replica.
func TestTheStateIsTheFirstReason(t *testing.T) {
	h := found(t, 0, func(a *answers) {
		a.info["role"], a.info["loading"], a.info["aof_last_write_status"] = "slave", "1", "err"
	}, nil)
	assert.Equal(t, []string{"replica", "replica", stateOK}, states(h))
	assert.Equal(t, []string{"replica", "replica", "loading", "loading", "writes", "writes"}, codes(h))
}

func states(h *health) (all []string) {
	for _, m := range h.Nodes {
		all = append(all, m.State)
	}
	return all
}

func TestWhatIsAsItShouldBeIsNoFlaw(t *testing.T) {
	for name, differ := range map[string]func(*answers){
		"no persistence is known": func(a *answers) { a.info, a.config = nil, nil },
		"nothing but INFO":        func(a *answers) { a.config = nil },
		"a clock that cannot be read well": func(a *answers) {
			*a.clock = clockReading{cli.Micros(1500 * time.Millisecond), cli.Micros(600 * time.Millisecond)}
		},
		"a second":                  func(a *answers) { a.clock.Offset = cli.Micros(time.Second) },
		"a cluster of one":          func(a *answers) { a.info["cluster_enabled"], a.cluster = "1", map[string]string{"cluster_size": "1"} },
		"a snapshot by hand failed": func(a *answers) { a.info["rdb_last_bgsave_status"] = "err" },
		"writes go on without it": func(a *answers) {
			a.info["rdb_last_bgsave_status"], a.config["save"], a.config["stop-writes-on-bgsave-error"] = "err", "1 1", "no"
		},
		"replicas enough":            func(a *answers) { a.info["min_slaves_good_slaves"], a.config["min-replicas-to-write"] = "1", "1" },
		"memory that does not count": func(a *answers) { a.info["maxmemory"], a.info["mem_not_counted_for_evict"] = "800000", "200000" },
		"a minute":                   func(a *answers) { a.config["timeout"] = "60" },
		"6.2":                        func(a *answers) { a.info["redis_version"] = "6.2.0" },
		"10.0":                       func(a *answers) { a.info["redis_version"] = "10.0.1" },
		"valkey":                     func(a *answers) { a.info["valkey_version"] = "8.0.1" },
		"nonsense": func(a *answers) {
			a.info["redis_version"], a.info["uptime_in_seconds"], a.info["maxmemory"] = "x", "-", "lots"
		},
	} {
		assert.Empty(t, found(t, 0, differ, nil).Warnings, name)
	}
}

// With the guard, a restart without memory is no problem.
func TestWithTheGuardMastersMayForget(t *testing.T) {
	h := found(t, time.Minute, func(a *answers) { a.info["aof_enabled"] = "0" }, nil)
	assert.Empty(t, h.Warnings)
}

// A deposed master grants locks until it misses its replica.
func TestNodesWarnsOfAGuardThatDoesNotCoverADeposedMaster(t *testing.T) {
	for name, c := range map[string]struct {
		guard, ttl time.Duration
		least, lag string
		want       string
	}{
		"the guard is the longest ttl":    {30 * time.Second, 0, "1", "10", "2 seconds, 12s. The guard of 30s does not cover that and the longest ttl, 30s: a promotion can let a second holder in. Give all clients a RestartGuard of 42s"},
		"a guard that covers too little":  {30 * time.Second, 20 * time.Second, "2", "9", "a RestartGuard of 31s"},
		"a guard that covers it":          {30 * time.Second, 18 * time.Second, "1", "10", ""},
		"no guard":                        {0, 0, "1", "10", ""},
		"no failover, as far as is known": {30 * time.Second, 0, "0", "10", ""},
		"not permitted to ask":            {30 * time.Second, 0, "", "", ""},
		"the lag is unknown":              {30 * time.Second, 0, "1", "", ""},
		"an absurd lag":                   {30 * time.Second, 0, "1", "9223372036854775807", "a RestartGuard of 2562047h"},
		"nonsense":                        {30 * time.Second, 0, "1", "-5", ""},
	} {
		m := newMaster("h:1", answers{info: soundInfo, config: map[string]string{"min-replicas-to-write": c.least, "min-replicas-max-lag": c.lag}}, time.Second)
		text := tellDeposed(m, c.guard, c.ttl)
		if c.want == "" {
			assert.Empty(t, text, name)
		} else {
			assert.Contains(t, text, c.want, name)
		}
	}
	h := found(t, time.Minute, func(a *answers) {
		a.info["min_slaves_good_slaves"], a.config["min-replicas-to-write"] = "1", "1"
	}, nil)
	assert.Equal(t, []string{"deposed", "deposed"}, codes(h))
	assert.NoError(t, h.verdict())
}

func TestNodesShowsTheServersOwnVersion(t *testing.T) {
	for want, info := range map[string]map[string]string{
		"7.4.1":            {"redis_version": "7.4.1"},
		"valkey 8.0.1":     {"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "8.0.1"},
		"redict 7.3.6":     {"redis_version": "7.2.4", "redict_version": "7.3.6"},
		"dragonfly 1.21.2": {"redis_version": "7.2.0", "dragonfly_version": "df-v1.21.2"},
	} {
		assert.Equal(t, want, version(info))
	}
}

func TestWhoeverIsToBeReplacedIsNotSetRight(t *testing.T) {
	h := found(t, time.Minute, func(a *answers) {
		a.info["role"], a.info["maxmemory_policy"], a.config["timeout"] = "slave", "allkeys-lru", "1"
	}, func(m *master) {
		m.ineligible, m.Quarantine = errors.New("is a replica"), cli.Micros(time.Minute)
	})
	assert.Equal(t, []string{"replica", "replica"}, codes(h))
}

func codes(h *health) (all []string) {
	for _, w := range h.Warnings {
		all = append(all, w.Code)
	}
	return all
}

func TestAQuarantineSaysWhatHappened(t *testing.T) {
	for reason, want := range map[string]string{
		"quarantined for 7.2s: restarted 2.8s ago":                "It was restarted",
		"quarantined for 7.2s: another server took over 2.8s ago": "Another server took its place",
		"is the same server as 10.0.0.3:6379":                     "It was restarted",
	} {
		h := found(t, 10*time.Second, nil, func(m *master) {
			m.ineligible, m.Quarantine = errors.New(reason), cli.Micros(7200*time.Millisecond)
		})
		assert.Equal(t, []string{"quarantine", "quarantine"}, codes(h))
		assert.Contains(t, h.Warnings[0].Text, want)
		assert.Equal(t, []string{"quarantine", "quarantine", stateOK}, states(h))
	}
}

// The two together have one vote, and a client that finds them refuses all locks.
func TestAServerThatIsListedTwice(t *testing.T) {
	h := found(t, 0, func(a *answers) { a.info["run_id"] = "the same" }, func(m *master) {
		m.unable, m.ineligible = redlock.ErrDuplicateNode, redlock.ErrDuplicateNode
	})
	assert.Equal(t, []string{stateOK, "duplicate", stateOK}, states(h))
	assert.Equal(t, []string{"duplicate"}, codes(h))
	assert.Contains(t, h.Warnings[0].Text, "same server as 10.0.0.1:6379")
	exit := (*cli.ExitError)(nil)
	require.ErrorAs(t, h.verdict(), &exit, "a majority could vote, and nobody lets it")
	assert.Equal(t, cli.ExitNoQuorum, exit.Code)
	assert.ErrorContains(t, exit, "listed twice")
}

func TestWhenAllClocksAreWrongItIsThisOne(t *testing.T) {
	at := func(offsets ...time.Duration) []warning {
		var all []*master
		for i, off := range offsets {
			all = append(all, newMaster(fmt.Sprint(i), answers{clock: &clockReading{Offset: cli.Micros(off)}}, time.Second))
		}
		all = append(all, newMaster("who may not be asked", answers{}, time.Second), newMaster("and another", answers{}, time.Second))
		return judge(all, 0, 0)
	}
	const s = time.Second
	for _, tc := range []struct {
		offsets []time.Duration
		nodes   []string // the masters that it is about
	}{
		{[]time.Duration{60 * s, 60*s + s/2, 60 * s}, []string{""}},
		{[]time.Duration{-60 * s, -60 * s, -60 * s}, []string{""}},
		{[]time.Duration{60 * s, 60 * s, 0}, []string{"0", "1"}},
		{[]time.Duration{60 * s, 62 * s, 64 * s}, []string{"0", "1", "2"}},
		{[]time.Duration{60 * s, -60 * s, 60 * s}, []string{"0", "1", "2"}},
		{[]time.Duration{0, 0, 0}, nil},
	} {
		var nodes []string
		for _, w := range at(tc.offsets...) {
			require.Equal(t, "clock", w.Code)
			nodes = append(nodes, w.Node)
		}
		assert.Equal(t, tc.nodes, nodes, tc.offsets)
	}
	assert.Contains(t, at(60*s, 60*s, 60*s)[0].Text, "This host's clock is 1m0s behind those of all")
	assert.Contains(t, at(-60*s, -60*s, -60*s)[0].Text, "This host's clock is 1m0s ahead of those of all")
}

func TestHowManyThereAre(t *testing.T) {
	for n, want := range map[int]string{1: "single", 2: "single", 3: "", 4: "even", 5: "", 6: "even", 7: ""} {
		assert.Equal(t, want, tooFew(n).Code, n)
	}
	assert.Contains(t, tooFew(4).Text, "4 masters survive the loss of 1, as 3 do")
	assert.Contains(t, tooFew(6).Text, "6 masters survive the loss of 2, as 5 do")
}
