package fence

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// Case 23: the hash is a constant, as builds that enforce FIPS 140 panic on SHA-1.
func TestScriptHashIsPinned(t *testing.T) {
	sum := sha1.Sum([]byte(writeText))
	require.Equal(t, hex.EncodeToString(sum[:]), writeSHA1, "write.lua was edited: pin its new hash")
}

// memory returns a RedisGuard on an in-memory server. Its client does not retry.
func memory(t *testing.T) (*RedisGuard, *redis.Client, *redlocktest.Master) {
	t.Helper()
	master := redlocktest.Start(t, 1).Master(0)
	client := master.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	g, err := NewRedis(client)
	require.NoError(t, err)
	return g, client, master
}

func TestRedisGuard(t *testing.T) {
	g, client, _ := memory(t)
	testRedisGuard(t, g, client)
}

// testRedisGuard tests a guard on any kind of server.
func testRedisGuard(t *testing.T, g *RedisGuard, client redis.UniversalClient) {
	ctx := t.Context()
	for _, key := range []string{"k", "{a}k", "a}b", "{}", "a{b"} {
		sibling := slot.Sibling(slot.GuardPrefix, key)
		refuses := func(err error, token, highest int64) {
			t.Helper()
			require.ErrorIs(t, err, ErrStaleToken)
			var stale *StaleError
			require.ErrorAs(t, err, &stale)
			require.Equal(t, StaleError{Resource: key, Token: token, Highest: highest}, *stale)
		}
		// Like real tokens, which are microseconds, these have 16 digits and are one apart.
		const first = int64(1<<53 - 3)
		require.NoError(t, g.Set(ctx, key, "one", 0, first))
		require.NoError(t, g.Set(ctx, key, "two", time.Hour, first), "an equal token passes")
		require.Equal(t, "two", client.Get(ctx, key).Val())
		require.InDelta(t, time.Hour, client.PTTL(ctx, key).Val(), float64(time.Minute))

		require.NoError(t, g.Set(ctx, key, "three", 0, first+1))
		require.Equal(t, time.Duration(-1), client.PTTL(ctx, key).Val(), "ttl 0 is none")
		require.Equal(t, "9007199254740990", client.Get(ctx, sibling).Val())
		refuses(g.Set(ctx, key, "late", 0, first), first, first+1)
		refuses(g.Del(ctx, key, first), first, first+1)
		require.Equal(t, "three", client.Get(ctx, key).Val(), "a refused write does nothing")

		require.NoError(t, g.Del(ctx, key, first+2))
		require.NoError(t, g.Del(ctx, key, first+2), "of no key")
		require.Zero(t, client.Exists(ctx, key).Val())
		refuses(g.Set(ctx, key, "late", 0, first+1), first+1, first+2)
		require.Zero(t, client.Exists(ctx, key).Val(), "a deleted key has not forgotten")
		require.Equal(t, time.Duration(-1), client.PTTL(ctx, sibling).Val(), "the token stays")

		// Tokens are compared as numbers: 10 is higher than 9.
		require.NoError(t, client.Set(ctx, sibling, "9", 0).Err())
		require.NoError(t, g.Set(ctx, key, "ten", 0, 10))
		refuses(g.Set(ctx, key, "nine", 0, 9), 9, 10)
	}
}

func TestRedisGuardFailsClosed(t *testing.T) {
	g, client, master := memory(t)
	ctx := t.Context()
	for _, held := range []string{"", "x", "-1", "1e3", "0x10", " 7"} {
		require.NoError(t, client.Set(ctx, "redlock:guard:{k}", held, 0).Err())
		require.ErrorContains(t, g.Set(ctx, "k", "v", 0, 5), "holds no token", "%q", held)
	}
	require.NoError(t, client.Del(ctx, "redlock:guard:{k}").Err())
	require.NoError(t, client.LPush(ctx, "redlock:guard:{k}", "5").Err())
	require.ErrorContains(t, g.Set(ctx, "k", "v", 0, 5), "WRONGTYPE")
	require.Zero(t, client.Exists(ctx, "k").Val())

	require.NoError(t, g.Set(ctx, "j", "v", 0, 5))
	require.NoError(t, master.FlushScripts())
	require.NoError(t, g.Set(ctx, "j", "w", 0, 5), "case 3: the script is sent again")
	require.Equal(t, "w", client.Get(ctx, "j").Val())

	lost := errors.New("the lock is lost")
	ended, cancel := context.WithCancelCause(ctx)
	cancel(lost)
	err := g.Set(ended, "j", "x", 0, 6)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, lost)
	require.Equal(t, "w", client.Get(ctx, "j").Val())

	// After a lost reply the caller does not know the outcome, and may try again.
	master.LoseReplies(1)
	err = g.Set(ctx, "j", "y", 0, 6)
	require.ErrorContains(t, err, `fence: set "j": `)
	require.NotErrorIs(t, err, ErrStaleToken)
	require.NoError(t, g.Set(ctx, "j", "y", 0, 6))
}

// answer is a hook that answers every script with reply or err.
type answer struct {
	reply any
	err   error
}

func (a answer) DialHook(next redis.DialHook) redis.DialHook { return next }
func (a answer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (a answer) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.(*redis.Cmd).SetVal(a.reply)
		cmd.SetErr(a.err)
		return a.err
	}
}

func TestRedisGuardTrustsNoStrangeReply(t *testing.T) {
	for _, reply := range []any{"", "ok", "1", "5", "-9", "9x", "QUEUED", int64(1), nil, []any{"OK"}} {
		g, client, _ := memory(t)
		client.AddHook(answer{reply: reply})
		err := g.Set(t.Context(), "k", "v", 0, 5)
		require.ErrorContains(t, err, `fence: set "k": `, "%v", reply)
		require.NotErrorIs(t, err, ErrStaleToken, "%v", reply)
	}
	g, client, _ := memory(t)
	client.AddHook(answer{err: errors.New("ERR unknown command 'EVALSHA', with args beginning with: 's3cret'")})
	require.EqualError(t, g.Del(t.Context(), "k", 5), `fence: delete "k": ERR unknown command 'EVALSHA'`)
}

func TestRedisGuardNamesTheArgument(t *testing.T) {
	g, client, master := memory(t)
	ctx := t.Context()
	require.NoError(t, client.Ping(ctx).Err())
	master.ResetCommands()
	require.ErrorContains(t, g.Set(ctx, "", "v", 0, 1), "fence: key is empty")
	require.ErrorContains(t, g.Del(ctx, "redlock:guard:{k}", 1), "is a guard's own")
	require.ErrorContains(t, g.Set(ctx, "k", "v", -1, 1), "fence: ttl -1ns ")
	require.ErrorContains(t, g.Set(ctx, "k", "v", time.Millisecond-1, 1), "fence: ttl 999.999µs ")
	for _, token := range []int64{-1, 0, 1 << 53} {
		require.ErrorContains(t, g.Set(ctx, "k", "v", 0, token), "fence: token ")
		require.ErrorContains(t, g.Del(ctx, "k", token), "fence: token ")
	}
	require.ErrorContains(t, new(RedisGuard).Set(ctx, "k", "v", 0, 1), "made by NewRedis")
	require.Empty(t, master.Commands(), "nothing was sent")
	require.NoError(t, g.Set(ctx, "k", "v", time.Millisecond, 1))

	for want, c := range map[string]redis.UniversalClient{
		"is nil":             nil,
		"is a *redis.Ring":   redis.NewRing(&redis.RingOptions{}),
		"*redis.Client that": (*redis.Client)(nil),
		"by its constructor": &redis.ClusterClient{},
	} {
		_, err := NewRedis(c)
		require.ErrorContains(t, err, "fence: client ")
		require.ErrorContains(t, err, want)
	}
	_, err := NewRedis(&redis.Client{})
	require.Error(t, err)
}
