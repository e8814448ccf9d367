package realtest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// deleteIfEqual is the release in Redlock's own description, which other libraries use.
const deleteIfEqual = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

// byHand sends SET key value NX PX ttl to every master, as any other client of the algorithm does.
// It returns how many granted it.
func (f *fleet) byHand(key, value string, ttl time.Duration) (grants int) {
	f.Helper()
	for _, a := range f.admin {
		err := a.SetArgs(f.ctx, key, value, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
		if err == nil {
			grants++
		} else {
			require.ErrorIs(f, err, redis.Nil)
		}
	}
	return grants
}

// releaseByHand returns how many masters deleted the key.
func (f *fleet) releaseByHand(key, value string) (deleted int) {
	f.Helper()
	for _, a := range f.admin {
		n, err := a.Eval(f.ctx, deleteIfEqual, []string{key}, value).Int()
		require.NoError(f, err)
		deleted += n
	}
	return deleted
}

// Clients of other Redlock libraries and ours exclude each other on
// the same keys.
func TestRealAcquireExcludesOtherClients(t *testing.T) {
	f := startFleet(t, 5)
	r := f.redlock(redlock.Config{})

	require.Equal(t, 5, f.byHand(key, "theirs", time.Minute))
	_, err := r.TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)
	f.cleanedUp(key)
	require.Equal(t, 5, f.releaseByHand(key, "theirs"), "our clean-up left theirs alone")

	l := f.acquire(r, key, ttl)
	f.onAll(key, l)
	assert.Zero(t, f.byHand(key, "theirs", time.Minute))
	assert.Zero(t, f.releaseByHand(key, "theirs"), "and their clean-up ours")
	f.onAll(key, l)
	require.NoError(t, f.release(l))
	f.gone(key)
	require.Equal(t, 5, f.byHand(key, "theirs", 50*time.Millisecond))

	// Ours waits for theirs to expire. It gets three masters at first, and then more.
	l, err = r.Acquire(f.ctx, key, ttl)
	require.NoError(t, err)
	f.eventually("all have ours", func() bool {
		require.NoError(t, l.Extend(f.ctx, ttl))
		for _, a := range f.admin {
			if a.Get(f.ctx, key).Val() != l.Value() {
				return false
			}
		}
		return true
	})

	// A client that knows our value can release our lock, and we find out.
	require.Equal(t, 5, f.releaseByHand(key, l.Value()))
	require.ErrorIs(t, f.release(l), redlock.ErrNotHeld)
}

// Case 15: the votes are split between theirs and ours. Neither has the lock, and each deletes its
// own keys.
func TestRealAcquireSplitVoteWithOtherClients(t *testing.T) {
	f := startFleet(t, 5)
	r := f.redlock(redlock.Config{})
	for i := range 3 {
		require.NoError(t, f.admin[i].SetArgs(f.ctx, key, "theirs", redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err())
	}
	_, err := r.TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)
	f.gone(key, 3, 4)
	assert.Equal(t, []int{0, 1, 2}, f.has(key))
	require.NoError(t, f.admin[0].Del(f.ctx, key).Err())
	l := f.acquire(r, key, ttl)
	assert.Equal(t, 0, f.byHand(key, "theirs", time.Minute))
	require.NoError(t, f.release(l))
	f.gone(key, 0, 3, 4)
	assert.Equal(t, []int{1, 2}, f.has(key))
}

// A key of another type belongs to another client.
func TestRealAcquireOfAKeyOfAnotherType(t *testing.T) {
	f := startFleet(t, 3)
	r := f.redlock(redlock.Config{})
	for _, a := range f.admin {
		require.NoError(t, a.LPush(f.ctx, key, "a list").Err())
	}
	_, err := r.TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)
	assert.Equal(t, []int{0, 1, 2}, f.has(key))
}
