package migrating_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// These scripts send the same commands as node-redlock 5, in the same order (src/index.ts of
// mike-marcacci/node-redlock, 5.0.0-beta.2). A lock may have several keys. ARGV[1] is the value and
// ARGV[2] the ttl in milliseconds.
var (
	nodeTake = redis.NewScript(`
		for _, key in ipairs(KEYS) do
			if redis.call('EXISTS', key) == 1 then
				return 0
			end
		end
		for _, key in ipairs(KEYS) do
			redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
		end
		return #KEYS`)

	nodeExtend = redis.NewScript(`
		for _, key in ipairs(KEYS) do
			if redis.call('GET', key) ~= ARGV[1] then
				return 0
			end
		end
		for _, key in ipairs(KEYS) do
			redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
		end
		return #KEYS`)

	nodeGive = redis.NewScript(`
		local n = 0
		for _, key in ipairs(KEYS) do
			if redis.call('GET', key) == ARGV[1] then
				redis.pcall('DEL', key)
				n = n + 1
			end
		end
		return n`)
)

// nodeRedlock is what a Redlock of node-redlock does on its masters.
type nodeRedlock struct {
	ctx     context.Context
	clients []*redis.Client
}

func (m *masters) nodeRedlock() nodeRedlock {
	n := nodeRedlock{ctx: m.ctx}
	for _, s := range m.servers {
		n.clients = append(n.clients, s.Client())
	}
	return n
}

// quorum runs the script on all masters. It fails with an error other than errRefused if a master
// does: here all of them work.
func (n nodeRedlock) quorum(script *redis.Script, keys []string, args ...any) error {
	votes := 0
	for _, c := range n.clients {
		done, err := script.Run(n.ctx, c, keys, args...).Int()
		if err != nil {
			return err
		}
		if done == len(keys) {
			votes++
		}
	}
	if votes < len(n.clients)/2+1 {
		return errRefused
	}
	return nil
}

func (n nodeRedlock) acquire(keys []string, value string, ttl time.Duration) error {
	err := n.quorum(nodeTake, keys, value, ttl.Milliseconds())
	if err != nil {
		return errors.Join(err, n.release(keys, value))
	}
	return nil
}

func (n nodeRedlock) extend(keys []string, value string, ttl time.Duration) error {
	return n.quorum(nodeExtend, keys, value, ttl.Milliseconds())
}

func (n nodeRedlock) release(keys []string, value string) error {
	return n.quorum(nodeGive, keys, value)
}

func nodeRedlockOther(m *masters) other {
	n := m.nodeRedlock()
	return func(_ context.Context, key string) (func(context.Context) error, error) {
		value := rand.Text() // 32 hex digits in the original
		if err := n.acquire([]string{key}, value, ttl); err != nil {
			return nil, err
		}
		return func(context.Context) error { return n.release([]string{key}, value) }, nil
	}
}

// A lock of node-redlock on several keys excludes ours on each of them, and any of ours excludes it.
func TestNodeRedlockLocksSeveralKeys(t *testing.T) {
	m := startMasters(t, 3)
	theirs, ours := m.nodeRedlock(), us(m.ours(redlock.Config{}))
	both := []string{"account:1", "account:2"}
	require.NoError(t, theirs.acquire(both, "theirs", ttl))
	ours.refused(m, "account:1")
	ours.refused(m, "account:2")
	require.NoError(t, theirs.release(both, "theirs"))
	release := ours.lock(m, "account:2")
	require.ErrorIs(t, theirs.acquire(both, "theirs", ttl), errRefused)
	m.free("account:1")
	release()
}

// An extension of node-redlock shortens a lock, and does not touch ours.
func TestNodeRedlockExtendShortens(t *testing.T) {
	m := startMasters(t, 3)
	theirs := m.nodeRedlock()
	require.NoError(t, theirs.acquire([]string{"theirs"}, "v", ttl))
	require.NoError(t, theirs.extend([]string{"theirs"}, "v", time.Minute))
	assert.LessOrEqual(t, m.admin[0].PTTL(m.ctx, "theirs").Val(), time.Minute)

	release := us(m.ours(redlock.Config{})).lock(m, "ours")
	require.ErrorIs(t, theirs.extend([]string{"ours"}, "v", time.Minute), errRefused)
	require.ErrorIs(t, theirs.release([]string{"ours"}, "v"), errRefused)
	assert.Greater(t, m.admin[0].PTTL(m.ctx, "ours").Val(), time.Minute)
	release()
}
