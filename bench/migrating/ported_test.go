package migrating_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// port is the scenario of one of redsync's own programs or tests, with the calls of this library.
type port struct {
	original string // its name in redsync 4.18.1
	nodes    int    // as many as in the original
	run      func(*world)
	sleeps   bool // it waits for time to pass, so it runs only in virtual time
}

var ports = []port{
	{original: "examples/goredis/v9/main.go", nodes: 1, run: portedExample},
	{original: "TestRedsync", nodes: 8, run: portedRedsync},
	{original: "TestMutex", nodes: 8, run: portedMutex},
	{original: "TestTryLock", nodes: 8, run: portedTryLock},
	{original: "TestMutexAlreadyLocked", nodes: 4, run: portedMutexAlreadyLocked},
	{original: "TestMutexQuorum", nodes: 4, run: portedMutexQuorum},
	{original: "TestMutexLockUnlockSplit", nodes: 4, run: portedLockUnlockSplit},
	{original: "TestRedisErrorIs", nodes: 1, run: portedRedisErrorIs},
	{original: "TestRedisErrorAs", nodes: 1, run: portedRedisErrorAs},
	{original: "TestValid", nodes: 4, run: portedValid, sleeps: true},
	{original: "TestMutexExtend", nodes: 8, run: portedMutexExtend, sleeps: true},
	{original: "TestMutexExtendExpired", nodes: 8, run: portedMutexExtendExpired, sleeps: true},
	{original: "TestMutexUnlockExpired", nodes: 8, run: portedMutexUnlockExpired, sleeps: true},
	{original: "TestSetNXOnExtendAcquiresLockWhenKeyIsExpired", nodes: 8, run: portedSetNXOnExtendExpired, sleeps: true},
	{original: "TestSetNXOnExtendFailsToAcquireLockWhenKeyIsTaken", nodes: 8, run: portedSetNXOnExtendTaken, sleeps: true},
}

// notPorted has the other tests of redsync, and why.
var notPorted = map[string]string{
	"TestScripts_Hash": "it checks redsync's own scripts; TestScriptHashesArePinned checks ours",
}

// Every port holds on in-memory masters in virtual time, and on real ones unless it waits for time
// to pass.
func TestPortedFromRedsync(t *testing.T) {
	for _, p := range ports {
		t.Run(p.original, func(t *testing.T) {
			t.Run("virtual", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					nodes := redlocktest.StartVirtual(t, p.nodes)
					p.run(&world{T: t, ctx: t.Context(), nodes: nodes.Clients(), admin: nodes.Clients()})
				})
			})
			if p.sleeps {
				return
			}
			t.Run("real", func(t *testing.T) {
				w := &world{T: t, ctx: t.Context(), config: redlock.Config{NodeTimeout: time.Minute}}
				for _, s := range redisserver.Start(t, p.nodes) {
					w.nodes = append(w.nodes, s.Client())
					w.admin = append(w.admin, s.Client())
				}
				p.run(w)
			})
		})
	}
}

// world is the nodes of a port, and its test.
type world struct {
	*testing.T
	ctx    context.Context
	nodes  []redis.UniversalClient
	admin  []redis.UniversalClient // clients that no Redlock uses
	config redlock.Config
}

// redlock makes a Redlock on all nodes. It is closed with the test.
func (w *world) redlock() *redlock.Redlock {
	w.Helper()
	r, err := redlock.New(w.nodes, w.config)
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, r.Close()) })
	return r
}

// quorum is N/2+1.
func (w *world) quorum() int { return len(w.nodes)/2 + 1 }

// acquired fails unless a quorum of nodes has the lock's value.
func (w *world) acquired(l *redlock.Lock) {
	w.Helper()
	n := 0
	for _, a := range w.admin {
		if a.Get(w.ctx, l.Key()).Val() == l.Value() {
			n++
		}
	}
	assert.GreaterOrEqual(w, n, w.quorum())
}

// expiries returns in how long the key expires on each node.
func (w *world) expiries(key string) (all []time.Duration) {
	for _, a := range w.admin {
		all = append(all, a.PTTL(w.ctx, key).Val())
	}
	return all
}

// Each test of redsync has a port, or a reason why it has none.
func TestEveryTestOfRedsyncIsPorted(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-redsync/redsync/v4").Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	known := map[string]bool{"TestMain": true}
	for _, p := range ports {
		known[p.original] = true
	}
	for name := range notPorted {
		assert.False(t, known[name], "%s has a port", name)
		known[name] = true
	}
	found := 0
	for _, f := range files {
		source, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(source, -1) {
			found++
			assert.True(t, known[string(m[1])], "%s in %s is not ported", m[1], filepath.Base(f))
		}
	}
	assert.Equal(t, len(known)-1, found, "the ports of tests that redsync does not have, less the example")
}
