package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// ttl is longer than any test here takes, so that no key of it expires.
const ttl = 10 * time.Minute

// masters is some real masters and the test that uses them.
type masters struct {
	*testing.T
	ctx     context.Context // ends when something hangs
	servers []*redisserver.Server
	admin   []*redis.Client // clients that no library uses
}

func startMasters(t *testing.T, n int) *masters {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 3*time.Minute, errors.New("the test hangs"))
	t.Cleanup(cancel)
	m := &masters{T: t, ctx: ctx, servers: redisserver.Start(t, n)}
	for _, s := range m.servers {
		m.admin = append(m.admin, s.Client())
	}
	return m
}

// first returns the first n of the masters.
func (m *masters) first(n int) *masters {
	sub := *m
	sub.servers, sub.admin = m.servers[:n], m.admin[:n]
	return &sub
}

// in returns the masters for a subtest.
func (m *masters) in(t *testing.T) *masters {
	sub := *m
	sub.T = t
	return &sub
}

func (m *masters) clients() (all []redis.UniversalClient) {
	for _, s := range m.servers {
		all = append(all, s.Client())
	}
	return all
}

// ours makes a Redlock on the masters. It is closed with the test.
func (m *masters) ours(cfg redlock.Config) *redlock.Redlock {
	m.Helper()
	if cfg.NodeTimeout == 0 {
		cfg.NodeTimeout = time.Minute // a loaded machine is slow; no operation waits for it
	}
	r, err := redlock.New(m.clients(), cfg)
	require.NoError(m, err)
	m.Cleanup(func() { assert.NoError(m, r.Close()) })
	return r
}

// free waits until no master has any of the keys: the last masters answer after the caller has its
// result.
func (m *masters) free(keys ...string) {
	m.Helper()
	for i, a := range m.admin {
		m.eventually(func() bool { return a.Exists(m.ctx, keys...).Val() == 0 }, "master %d is to be free", i)
	}
}

// everywhere waits until all masters have the key, also those that answer after the decision.
func (m *masters) everywhere(key string) {
	m.Helper()
	for i, a := range m.admin {
		m.eventually(func() bool { return a.Exists(m.ctx, key).Val() == 1 }, "master %d is to have the key", i)
	}
}

func (m *masters) eventually(is func() bool, what string, args ...any) {
	m.Helper()
	for !is() {
		if m.ctx.Err() != nil {
			require.FailNow(m, fmt.Sprintf(what, args...))
		}
		time.Sleep(time.Millisecond)
	}
}

// record makes every master log all commands from now on.
func (m *masters) record() {
	m.Helper()
	for _, a := range m.admin {
		require.NoError(m, a.ConfigSet(m.ctx, "slowlog-log-slower-than", "0").Err())
		require.NoError(m, a.ConfigSet(m.ctx, "slowlog-max-len", "1000").Err())
		require.NoError(m, a.Do(m.ctx, "slowlog", "reset").Err())
	}
}

// commands returns what clients and scripts have sent to the first master since record, oldest
// first, without connection set-up and without the commands of this test. A script's own commands
// come before the EVAL or EVALSHA that ran it.
func (m *masters) commands() (all [][]string) {
	m.Helper()
	log, err := m.admin[0].SlowLogGet(m.ctx, -1).Result()
	require.NoError(m, err)
	slices.Reverse(log)
	for _, entry := range log {
		args := slices.Clone(entry.Args)
		args[0] = strings.ToUpper(args[0])
		switch args[0] {
		case "SLOWLOG", "CONFIG", "HELLO", "CLIENT", "AUTH", "PING", "SELECT", "COMMAND", "INFO", "CLUSTER":
			continue
		}
		all = append(all, args)
	}
	return all
}
