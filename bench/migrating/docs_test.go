package migrating_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis/rueidislock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// The parts of programs that docs/migrating.md shows, compiled.

func underBothLocks(ctx context.Context, old rueidislock.Locker, locks *redlock.Redlock, work func(context.Context) error) error {
	held, release, err := old.WithContext(ctx, "report")
	if err != nil {
		return err
	}
	defer release()
	// held ends with the old lock, and the context of the function also with the new one.
	return locks.Do(held, "report", 10*time.Second, work)
}

func beforeRedsync(ctx context.Context, pools []redsyncredis.Pool, work func(context.Context) error) error {
	// before
	mutex := redsync.New(pools...).NewMutex("report", redsync.WithExpiry(10*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(ctx)
	return work(ctx)
}

func afterRedsync(ctx context.Context, clients []redis.UniversalClient, work func(context.Context) error) error {
	// after, with a ctx that has a deadline; Do renews the lock, and its function's context ends with it
	locks, err := redlock.New(clients, redlock.Config{})
	if err != nil {
		return err
	}
	defer locks.Close()
	return locks.Do(ctx, "report", 10*time.Second, work)
}

func oneMaster(client redis.UniversalClient) (*redlock.Redlock, error) {
	locks, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{})
	return locks, err
}

func oneMasterOfRueidislock(client redis.UniversalClient) (*redlock.Redlock, error) {
	locks, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{KeyPrefix: "rueidislock:0:"})
	return locks, err
}

// The programs before and after work, and exclude each other.
func TestMigratingProgramsWork(t *testing.T) {
	m := startMasters(t, 3)
	var done []string
	step := func(what string) func(context.Context) error {
		return func(ctx context.Context) error { done = append(done, what); return ctx.Err() }
	}
	var pools []redsyncredis.Pool
	for _, c := range m.clients() {
		pools = append(pools, redsyncPool(c))
	}
	clients := m.clients()
	require.NoError(t, beforeRedsync(m.ctx, pools, step("before")))
	require.NoError(t, afterRedsync(m.ctx, clients, step("after")))
	require.NoError(t, beforeRedsync(m.ctx, pools, func(context.Context) error {
		ctx, cancel := context.WithCancel(m.ctx)
		defer cancel()
		go func() {
			defer cancel()
			m.everywhere("redlock:queued:{report}") // it was refused, and waits
		}()
		require.ErrorIs(t, afterRedsync(ctx, clients, step("both")), redlock.ErrHeld)
		return nil
	}))
	require.NoError(t, underBothLocks(m.ctx, m.rueidisLocker(2), m.ours(redlock.Config{}), step("under both")))
	for _, open := range []func(redis.UniversalClient) (*redlock.Redlock, error){oneMaster, oneMasterOfRueidislock} {
		locks, err := open(clients[0])
		require.NoError(t, err)
		require.NoError(t, locks.Do(m.ctx, "report", ttl, step("one master")))
		require.NoError(t, locks.Close())
	}
	assert.Equal(t, []string{"before", "after", "under both", "one master", "one master"}, done)
}

// Every line of Go in docs/migrating.md is a line of this file.
func TestMigratingShowsCompiledCode(t *testing.T) {
	source, err := os.ReadFile("docs_test.go")
	require.NoError(t, err)
	have := map[string]bool{"": true}
	for line := range strings.Lines(string(source)) {
		have[strings.TrimSpace(line)] = true
	}
	blocks := strings.Split(migratingPage(t), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		for line := range strings.Lines(code) {
			assert.True(t, have[strings.TrimSpace(line)], "not compiled: %q", line)
		}
	}
}

// Every test that docs/migrating.md names exists here or in redsync, and each pair of the side by
// side test has a row.
func TestMigratingNamesTestsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, p := range ports {
		known[p.original] = true
	}
	for name := range notPorted {
		known[name] = true
	}
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range test.FindAllSubmatch(source, -1) {
			known[string(m[1])] = true
		}
		return err
	}))
	page := migratingPage(t)
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		assert.True(t, known[m[1]], "there is no %s", m[1])
	}
	for name := range known {
		if notOurs := notPorted[name] != ""; notOurs || isPort(name) {
			assert.Contains(t, page, "`"+name+"`", "the table of redsync's tests")
		}
	}
}

func isPort(name string) bool {
	for _, p := range ports {
		if p.original == name && strings.HasPrefix(name, "Test") {
			return true
		}
	}
	return false
}

func migratingPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/migrating.md")
	require.NoError(t, err)
	return string(page)
}
