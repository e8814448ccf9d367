package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// realMaster starts one real server with the configuration that locks need, except for options.
func realMaster(t *testing.T, options ...redisserver.Option) *redisserver.Server {
	t.Helper()
	sound := redisserver.Config("appendonly yes", "appendfsync always")
	return redisserver.Start(t, 1, append([]redisserver.Option{sound}, options...)...)[0]
}

func TestRealMastersTellWhatTheyAre(t *testing.T) {
	plain := realMaster(t)
	odd := realMaster(t, redisserver.RequirePass("s3cret"), redisserver.Config(
		"appendonly no", "save 3600 1", "maxmemory 64mb", "maxmemory-policy volatile-ttl", "timeout 7"))
	dead := realMaster(t)
	dead.Kill()
	code, h := nodesOf(t, []string{plain.URL(), odd.URL(), dead.URL()})
	assert.Equal(t, cli.ExitOK, code)
	assert.Equal(t, []string{"ok", "ok", "unreachable"}, h.states())
	assert.Equal(t, []string{"unreachable", "memory", "eviction", "timeout"}, h.codes())
	for _, w := range h.Warnings[1:] {
		assert.Equal(t, odd.Addr(), w.Node)
	}

	n := h.Nodes[0]
	assert.Equal(t, []string{plain.Addr(), "master", "yes", "always", "noeviction"}, []string{n.Addr, n.Role, n.Appendonly, n.Appendfsync, n.Policy})
	assert.Len(t, n.RunID, 40)
	assert.Equal(t, "", *n.Save)
	assert.Zero(t, *n.Maxmemory)
	assert.Zero(t, *n.Timeout)
	assert.GreaterOrEqual(t, *n.Uptime, int64(0))
	assert.Positive(t, n.RoundTrip)
	assert.LessOrEqual(t, max(n.Clock.Offset, -n.Clock.Offset), n.Clock.Within+1, "it has our clock")

	n = h.Nodes[1]
	assert.Equal(t, []string{"no", "volatile-ttl"}, []string{n.Appendonly, n.Policy})
	assert.Equal(t, "3600 1", *n.Save)
	assert.EqualValues(t, 64<<20, *n.Maxmemory)
	assert.EqualValues(t, 7, *n.Timeout)
	assert.NotEqual(t, h.Nodes[0].RunID, n.RunID)
}

// Values that the user may not ask for are unknown, which raises no warning.
func TestRealUserWhoMayDoNothingButLock(t *testing.T) {
	const rights = "resetkeys ~locks:* ~redlock:queued:*locks:* resetchannels -@all +set +get +del +pttl +pexpire +evalsha +eval"
	const waits = " ~redlock:queue:*locks:* &redlock:wake:* +subscribe +publish +ping +time +exists +zadd +zcount +zrange +zrangebyscore +zrem +zscore"
	m := realMaster(t, redisserver.ACL("locker on >s3cret "+rights, "curious on >s3cret "+rights+waits+" +info"))
	as := func(user string) string { return strings.Replace(m.URL(), "://", "://"+user+":s3cret@", 1) }

	code, h := nodesOf(t, []string{as("locker")}, "--prefix", "locks:")
	assert.Equal(t, cli.ExitOK, code)
	assert.Equal(t, []string{"queue", "single"}, h.codes())
	n := h.Nodes[0]
	assert.Positive(t, n.RoundTrip, "a refusal takes a round trip too")
	assert.Nil(t, n.Clock)
	assert.Nil(t, n.Uptime)
	assert.Empty(t, n.Role+n.Version+n.RunID+n.Appendonly+n.Appendfsync+n.Policy)

	code, h = nodesOf(t, []string{as("curious")}, "--prefix", "locks:")
	assert.Equal(t, cli.ExitOK, code)
	n = h.Nodes[0]
	assert.Equal(t, []string{"master", "yes", "", "noeviction"}, []string{n.Role, n.Appendonly, n.Appendfsync, n.Policy})

	assert.Equal(t, []string{"single"}, h.codes(), "it may queue")
	_, h = nodesOf(t, []string{as("locker")})
	assert.Equal(t, []string{"rights"}, h.states(), "of other keys than its own")
	_, h = nodesOf(t, []string{as("locker")}, "--prefix", "locks:", "--restart-guard", "1")
	assert.Equal(t, []string{"rights"}, h.states(), "the guard needs INFO")
	assert.Contains(t, h.Warnings[0].Text, "INFO")
}

// If a user lacks any right of the lists in docs/operations.md, that is reported. Without a right
// of the first list the master cannot vote, and without one of the second list waits do not queue.
func TestRealEachRightIsMissed(t *testing.T) {
	lists := map[string][]string{
		"rights": {"~locks:*", "~redlock:queued:*locks:*", "+set", "+get", "+del", "+pttl", "+pexpire", "+evalsha", "+eval"},
		"queue": {"~redlock:queue:*locks:*", "&redlock:wake:*", "+subscribe", "+publish", "+ping", "+time", "+exists",
			"+zadd", "+zcount", "+zrange", "+zrangebyscore", "+zrem", "+zscore"},
	}
	all := slices.Concat(lists["rights"], lists["queue"])
	users := []string{"complete on >s3cret resetkeys resetchannels -@all " + strings.Join(all, " ")}
	codes := []string{""}
	for code, list := range lists {
		for _, right := range list {
			rest := slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == right })
			users = append(users, fmt.Sprintf("lacks%d on >s3cret resetkeys resetchannels -@all %s", len(users), strings.Join(rest, " ")))
			codes = append(codes, code+" "+right)
		}
	}
	m := realMaster(t, redisserver.ACL(users...))
	for i, user := range users {
		name, _, _ := strings.Cut(user, " ")
		url := strings.Replace(m.URL(), "://", "://"+name+":s3cret@", 1)
		_, h := nodesOf(t, []string{url}, "--prefix", "locks:")
		code, right, _ := strings.Cut(codes[i], " ")
		switch code {
		case "":
			assert.Equal(t, []string{"single"}, h.codes())
			continue
		case "rights":
			assert.Equal(t, []string{"rights"}, h.states(), right)
		case "queue":
			assert.Equal(t, []string{stateOK}, h.states(), right)
		}
		require.Contains(t, h.codes(), code, right)
		if command, ok := strings.CutPrefix(right, "+"); ok {
			assert.Contains(t, h.Warnings[0].Text, command)
		}
	}
	assert.Empty(t, m.Client().Keys(t.Context(), "*").Val(), "it writes nothing")
}

// The state agrees with what a lock finds out: it is ok if and only if a lock can be had of that
// master alone.
func TestRealStateIsWhatALockFinds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, tc := range map[string]struct {
		state   string
		guard   time.Duration
		options []redisserver.Option
		arrange func(t *testing.T, s *redisserver.Server)
		url     func(s *redisserver.Server) string
	}{
		"sound":           {state: stateOK},
		"unix socket":     {state: stateOK, options: []redisserver.Option{redisserver.UnixSocket()}},
		"TLS":             {state: stateOK, options: []redisserver.Option{redisserver.TLS()}, url: func(s *redisserver.Server) string { return s.URL() + "?skip_verify=true" }},
		"TLS, a stranger": {state: "unreachable", options: []redisserver.Option{redisserver.TLS()}},
		"dead":            {state: "unreachable", arrange: func(_ *testing.T, s *redisserver.Server) { s.Kill() }},
		"hung":            {state: "unreachable", arrange: func(t *testing.T, s *redisserver.Server) { require.NoError(t, s.Pause()) }},
		"no password": {state: "password", options: []redisserver.Option{redisserver.RequirePass("s3cret")},
			url: func(s *redisserver.Server) string { return "redis://" + s.Addr() }},
		"wrong password": {state: "password", options: []redisserver.Option{redisserver.RequirePass("s3cret")},
			url: func(s *redisserver.Server) string { return "redis://:s3cret2@" + s.Addr() }},
		"no such database":            {state: "failing", url: func(s *redisserver.Server) string { return s.URL() + "/999" }},
		"replica":                     {state: "replica", options: []redisserver.Option{redisserver.Config("replicaof 127.0.0.1 1")}},
		"stale replica":               {state: "replica", options: []redisserver.Option{redisserver.Config("replicaof 127.0.0.1 1", "replica-serve-stale-data no")}},
		"full":                        {state: "writes", options: []redisserver.Option{redisserver.Config("maxmemory 1kb")}},
		"full, evicts":                {state: stateOK, options: []redisserver.Option{redisserver.Config("maxmemory 100mb", "maxmemory-policy allkeys-lru")}},
		"no replicas":                 {state: "writes", options: []redisserver.Option{redisserver.Config("min-replicas-to-write 1")}},
		"failed snapshot":             {state: "writes", options: []redisserver.Option{redisserver.Config("save 3600 1")}, arrange: failSnapshot},
		"failed snapshot, by hand":    {state: stateOK, arrange: failSnapshot},
		"failed snapshot, regardless": {state: stateOK, options: []redisserver.Option{redisserver.Config("save 3600 1", "stop-writes-on-bgsave-error no")}, arrange: failSnapshot},
		"young":                       {state: "quarantine", guard: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := realMaster(t, tc.options...)
			if tc.arrange != nil {
				tc.arrange(t, s)
			}
			url := s.URL()
			if tc.url != nil {
				url = tc.url(s)
			}
			code, h := nodesOf(t, []string{url}, "--restart-guard", tc.guard.String())
			assert.Equal(t, []string{tc.state}, h.states(), h.Warnings)

			r, err := redlock.Open([]string{url}, redlock.Config{NodeTimeout: time.Second, RestartGuard: tc.guard})
			require.NoError(t, err)
			defer func() { require.NoError(t, r.Close()) }()
			l, err := r.TryAcquire(ctx, "a lock", time.Minute)
			assert.Equal(t, code == cli.ExitOK, err == nil, err)
			if err == nil {
				assert.NoError(t, l.Release(ctx))
			}
		})
	}
}

// failSnapshot puts a folder where the snapshot's file should be.
func failSnapshot(t *testing.T, s *redisserver.Server) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(s.Dir(), "dump.rdb", "x"), 0o700))
	admin := s.Client()
	require.NoError(t, admin.BgSave(t.Context()).Err())
	require.Eventually(t, func() bool {
		return strings.Contains(admin.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, admin.Close())
}

func TestRealClusterByOneOfItsServers(t *testing.T) {
	one, two := redisserver.StartCluster(t, 1), redisserver.StartCluster(t, 2)
	_, h := nodesOf(t, []string{one.Servers()[0].URL(), two.Servers()[0].URL(), two.Servers()[1].URL()})
	assert.Equal(t, []string{stateOK, "cluster", "cluster"}, h.states(), "one that has all slots refuses no key")
}

// A replica of a listed master is reported, as is one of any other master.
func TestRealReplica(t *testing.T) {
	master := realMaster(t)
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := realMaster(t, redisserver.Config("replicaof "+host+" "+port))
	_, h := nodesOf(t, []string{master.URL(), replica.URL()})
	assert.Equal(t, []string{stateOK, "replica"}, h.states())
	assert.Equal(t, []string{"replica", "single"}, h.codes())
	assert.Contains(t, h.Warnings[0].Text, "replica of "+master.Addr())
}

// The message for a master that hangs has the timeout that was set.
func TestRealHungMaster(t *testing.T) {
	s := realMaster(t)
	require.NoError(t, s.Pause())
	code, h := nodesOf(t, []string{s.URL()}, "--timeout", "50ms")
	assert.Equal(t, cli.ExitNoQuorum, code)
	assert.Contains(t, h.Warnings[0].Text, "does not answer within 50ms")
}
