package realtest_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

const rightPassword, wrongPassword = "correct-horse", "battery-staple"

// requirepass, with clients and with URLs.
func TestRealAcquireWithAPassword(t *testing.T) {
	f := startFleet(t, 3, redisserver.RequirePass(rightPassword))
	f.allGrant(f.redlock(redlock.Config{}), "new")
	f.allGrant(f.open("", redlock.Config{}), "open")
}

// A vote needs positive evidence. With a wrong password on a majority, every operation returns
// ErrNoQuorum, which names WRONGPASS; go-redis leaves the error of each command in a pipeline nil
// then. The password is not shown.
func TestRealAcquireWithAWrongPasswordOnAMajority(t *testing.T) {
	f := startFleet(t, 5, redisserver.RequirePass(rightPassword))
	clients := f.clients()
	for _, i := range []int{0, 2, 3} {
		clients[i] = f.servers[i].Client(func(o *redis.Options) { o.Password = wrongPassword })
	}
	r := f.redlockOf(clients, redlock.Config{})

	const callers = 64 // calls that come together are sent as a pipeline
	errs := make(chan error, callers)
	for i := range callers {
		go func() {
			_, err := r.TryAcquire(f.ctx, strconv.Itoa(i), ttl)
			errs <- err
		}()
	}
	for range callers {
		err := <-errs
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(t, err, redlock.ErrHeld)
		assert.Contains(t, fmt.Sprint(err), "WRONGPASS")
		assert.NotContains(t, fmt.Sprint(err), wrongPassword)
		assert.NotContains(t, fmt.Sprint(err), rightPassword)
	}
	for i := range f.servers {
		f.eventually("no key is left", func() bool { return f.admin[i].DBSize(f.ctx).Val() == 0 })
	}
}

// A password is changed while a lock is held. No operation takes the refusal for an answer.
func TestRealExtendAfterAChangeOfPassword(t *testing.T) {
	f := startFleet(t, 3, redisserver.RequirePass(rightPassword))
	r := f.redlock(redlock.Config{})
	l := f.hold(r, key)
	for i := range 2 {
		require.NoError(t, f.admin[i].ConfigSet(f.ctx, "requirepass", "another").Err())
		require.NoError(t, f.admin[i].ClientKillByFilter(f.ctx, "TYPE", "normal", "SKIPME", "yes").Err())
	}
	for range 2 { // on the broken connections, and on new ones
		err := l.Extend(f.ctx, time.Hour)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(t, err, redlock.ErrNotHeld)
	}
	require.NoError(t, l.Context().Err(), "it goes on until Until")
	err := f.release(l)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.Contains(t, fmt.Sprint(err), "WRONGPASS")
	assert.NotContains(t, fmt.Sprint(err), rightPassword)
}

// With URLs the error is the same: no vote, WRONGPASS by name, and no password in it.
func TestRealOpenWithAWrongPassword(t *testing.T) {
	f := startFleet(t, 3, redisserver.RequirePass(rightPassword))
	var urls []string
	for _, s := range f.servers {
		urls = append(urls, "redis://:"+wrongPassword+"@"+s.Addr())
	}
	r, err := redlock.Open(urls, redlock.Config{})
	require.NoError(t, err, "Open contacts nobody")
	defer func() { assert.NoError(t, r.Close()) }()
	_, err = r.TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.NotErrorIs(t, err, redlock.ErrHeld)
	assert.Contains(t, fmt.Sprint(err), "WRONGPASS")
	assert.NotContains(t, fmt.Sprint(err), wrongPassword)
}

// A release that is refused during a rotation of passwords or rights is delivered when the client
// has access again; otherwise its key would stay for the whole ttl. The caller gets an error at
// once. A connection that was never authenticated is not used again.
func TestRealReleaseIsDeliveredAfterARotation(t *testing.T) {
	for says, rotation := range map[string]struct {
		meanwhile string // the password that the client has
		begin     func(f *fleet, i int)
		end       func(f *fleet, i int)
	}{
		"WRONGPASS": {meanwhile: rightPassword},
		"NOAUTH":    {meanwhile: ""},
		"NOPERM": {
			meanwhile: "another",
			begin: func(f *fleet, i int) {
				require.NoError(f, f.admin[i].Do(f.ctx, "acl", "setuser", "default", "-eval", "-evalsha").Err())
			},
			end: func(f *fleet, i int) {
				require.NoError(f, f.admin[i].Do(f.ctx, "acl", "setuser", "default", "+eval", "+evalsha").Err())
			},
		},
	} {
		t.Run(says, func(t *testing.T) {
			f := startFleet(t, 3, redisserver.RequirePass(rightPassword))
			var password atomic.Value
			password.Store(rightPassword)
			r := f.redlockOf(f.clients(func(o *redis.Options) {
				o.Password = ""
				o.CredentialsProvider = func() (string, string) { return "", password.Load().(string) }
			}), redlock.Config{})
			l := f.hold(r, key)
			password.Store(rotation.meanwhile)
			for _, i := range []int{0, 1} {
				require.NoError(t, f.admin[i].ConfigSet(f.ctx, "requirepass", "another").Err())
				require.NoError(t, f.admin[i].ClientKillByFilter(f.ctx, "TYPE", "normal", "SKIPME", "yes").Err())
				if rotation.begin != nil {
					rotation.begin(f, i)
				}
			}
			require.Error(t, l.Extend(f.ctx, time.Hour), "on the broken connections")
			err := f.release(l)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			assert.Contains(t, fmt.Sprint(err), says)
			f.onAll(key, l, 0, 1)
			if says != "NOPERM" { // which only forbids scripts
				_, err = r.TryAcquire(f.ctx, "another key", time.Hour)
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
				assert.Contains(t, fmt.Sprint(err), says)
			}
			password.Store("another")
			for _, i := range []int{0, 1} {
				if rotation.end != nil {
					rotation.end(f, i)
				}
			}
			f.gone(key)
			l = f.acquire(r, key, time.Hour)
			require.NoError(t, f.release(l))
		})
	}
}
