package realtest_test

import (
	"fmt"
	"net/url"
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

// minimalRights are those that docs/operations.md requires, with lock: as the prefix of the keys.
// Commands that scripts call are checked too. Every user may run HELLO and AUTH. The other commands
// of go-redis' handshake may fail.
//
// A user that also has wakingRights is woken, and wakes others. A user with only minimalRights
// tries after pauses. On a Cluster, shardRights take the place of wakingRights.
var (
	minimalRights = []string{"~lock:*", "~redlock:queued:*lock:*",
		"+set", "+get", "+del", "+pttl", "+pexpire", "+evalsha", "+eval"}
	queueRights = []string{"~redlock:queue:*lock:*", "&redlock:wake:*", "+ping", "+time", "+exists",
		"+zadd", "+zcount", "+zrange", "+zrangebyscore", "+zrem", "+zscore"}
	wakingRights = slices.Concat(minimalRights, queueRights, []string{"+subscribe", "+publish"})
	shardRights  = slices.Concat(minimalRights, queueRights, []string{"+ssubscribe", "+spublish"})
)

const aclPassword = "open-sesame"

// user returns a line for redis.conf.
func user(name string, rights ...string) string {
	return fmt.Sprintf("user %s on >%s resetkeys resetchannels -@all %s", name, aclPassword, strings.Join(rights, " "))
}

func as(name string) func(*redis.Options) {
	return func(o *redis.Options) { o.Username, o.Password = name, aclPassword }
}

var prefixed = redlock.Config{KeyPrefix: "lock:"}

// An ACL user with exactly the rights in the docs can do everything: acquire, find a key held,
// extend, renew, top up and release, with a full and with an empty script cache.
func TestRealACLMinimalRights(t *testing.T) {
	f := startFleet(t, 3, redisserver.ACL(user("locker", minimalRights...), user("waker", wakingRights...)))
	for name, r := range map[string]*redlock.Redlock{
		"new":          f.redlockOf(f.clients(as("locker")), prefixed),
		"open":         f.openAs("locker"),
		"new, waking":  f.redlockOf(f.clients(as("waker")), prefixed),
		"open, waking": f.openAs("waker"),
	} {
		f.flushScripts()
		l := f.acquire(r, name, ttl)
		assert.True(t, granted(f.round("acquire", name)))
		require.NoError(t, l.Extend(f.ctx, time.Minute))
		f.onAll("lock:"+name, l)
		_, err := r.TryAcquire(f.ctx, name, ttl)
		require.ErrorIs(t, err, redlock.ErrHeld)
		assert.NotContains(t, fmt.Sprint(err), "NOPERM")
		assert.NotContains(t, fmt.Sprint(err), "can't")
		require.NoError(t, f.admin[2].Del(f.ctx, "lock:"+name).Err())
		l.KeepAlive()
		require.NoError(t, l.Extend(f.ctx, 2*time.Minute))
		f.onAll("lock:"+name, l) // topped up
		next := make(chan *redlock.Lock)
		go func() {
			l, _ := r.Acquire(f.ctx, name, ttl) // nil if it fails
			next <- l
		}()
		require.NoError(t, f.release(l))
		l = <-next
		require.NotNil(t, l)
		require.NoError(t, f.release(l))
		f.gone("lock:" + name)
		assert.True(t, granted(f.round("release", name)))
	}
}

func (f *fleet) openAs(name string) *redlock.Redlock {
	f.Helper()
	var urls []string
	for _, s := range f.servers {
		u := url.URL{Scheme: "redis", User: url.UserPassword(name, aclPassword), Host: s.Addr()}
		urls = append(urls, u.String())
	}
	r, err := redlock.Open(urls, f.config(prefixed))
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, r.Close()) })
	return r
}

// Each right is needed: without it some operation returns ErrNoQuorum, which names the refusal. It
// never returns ErrHeld, ErrNotHeld or success.
func TestRealACLNeedsEachRight(t *testing.T) {
	const (
		noCommand = "NOPERM this user has no permissions to run the"
		noKey     = "NOPERM this user has no permissions to access one of the keys"
		inAScript = "can't run this command" // Redis 7.0 does not reply NOPERM for these
	)
	cases := []struct {
		right, fails, says string
	}{
		{"~lock:*", "acquire", noKey},
		{"~redlock:queued:*lock:*", "release", noKey},
		{"+set", "acquire", noCommand},
		{"+evalsha", "extend", noCommand},
		{"+evalsha", "release", noCommand},
		{"+eval", "extend", noCommand},
		{"+eval", "release", noCommand},
		{"+get", "extend", inAScript},
		{"+get", "release", inAScript},
		{"+pttl", "extend", inAScript},
		{"+pexpire", "extend", inAScript},
		{"+del", "release", inAScript},
	}
	var users []string
	for i, tc := range cases {
		var rights []string
		for _, right := range minimalRights {
			if right != tc.right {
				rights = append(rights, right)
			}
		}
		if tc.right == "~lock:*" {
			rights = append(rights, "~other:*")
		}
		users = append(users, user(fmt.Sprintf("lacks%d", i), rights...))
	}
	f := startFleet(t, 3, redisserver.ACL(users...))
	for i, tc := range cases {
		r := f.redlockOf(f.clients(as(fmt.Sprintf("lacks%d", i))), prefixed)
		name := fmt.Sprintf("%s without %s", tc.fails, tc.right)
		f.flushScripts()
		if tc.right == "+evalsha" {
			// The first call of a script sends its whole text, by EVAL.
			l := f.acquire(r, "first", ttl)
			require.NoError(t, l.Extend(f.ctx, time.Hour))
			f.onAll("lock:first", l)
			require.NoError(t, f.release(l))
		}
		l, err := r.TryAcquire(f.ctx, name, ttl)
		if tc.fails != "acquire" {
			require.NoError(t, err, name)
			f.onAll("lock:"+name, l)
			if tc.fails == "extend" {
				err = l.Extend(f.ctx, time.Hour)
				assert.NoError(t, l.Context().Err(), "%s: the lock goes on", name)
			} else {
				err = f.release(l)
			}
		}
		require.ErrorIs(t, err, redlock.ErrNoQuorum, name)
		assert.NotErrorIs(t, err, redlock.ErrHeld, name)
		assert.NotErrorIs(t, err, redlock.ErrNotHeld, name)
		assert.Contains(t, fmt.Sprint(err), tc.says, name)
		assert.NotContains(t, fmt.Sprint(err), aclPassword)
	}
}

// A database other than 0 also needs +select, and a Cluster node +cluster|slots.
func TestRealACLRightsForDatabasesAndClusters(t *testing.T) {
	users := redisserver.ACL(
		user("locker", minimalRights...),
		user("selecting", append([]string{"+select"}, minimalRights...)...),
		user("clustered", append([]string{"+cluster|slots"}, minimalRights...)...),
	)
	database := func(o *redis.Options) { o.DB = 2 }
	f := startFleet(t, 3, users)
	f.allGrant(f.redlockOf(f.clients(as("selecting"), database), prefixed), key)
	_, err := f.redlockOf(f.clients(as("locker"), database), prefixed).TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.Contains(t, fmt.Sprint(err), "NOPERM")

	c := redisserver.StartCluster(t, 3, users)
	for name, takesPart := range map[string]bool{"clustered": true, "locker": false} {
		client := c.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = name, aclPassword })
		r := f.redlockOf(append(f.clients(as("locker")), client), prefixed)
		for i := range 10 { // keys of all shards
			k := fmt.Sprint(name, i)
			if takesPart {
				f.allGrant(r, k)
				continue
			}
			f.cycle(r, k)
			assert.False(t, granted(f.round("acquire", k)))
		}
	}
}
