package realtest_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// The client makes its first connection itself. If a server does not know maintenance
// notifications, go-redis writes to the client's options, under a lock that a Conn does not share.
// The application uses the client at the same time. The race detector decides.
func TestRealAcquireConnectsBesideTheApplication(t *testing.T) {
	f := startFleet(t, 1)
	for range 20 {
		client := f.servers[0].Client(func(o *redis.Options) {
			o.Protocol, o.MaintNotificationsConfig = 3, &maintnotifications.Config{Mode: maintnotifications.ModeAuto}
		})
		r := f.redlockOf([]redis.UniversalClient{client}, redlock.Config{})
		done := make(chan error)
		for range 4 {
			go func() { done <- client.Ping(f.ctx).Err() }()
		}
		f.cycle(r, key)
		for range 4 {
			require.NoError(t, <-done)
		}
	}
}

// TLS, with clients that trust the authority and with URLs.
func TestRealAcquireOverTLS(t *testing.T) {
	f := startFleet(t, 3, redisserver.TLS())
	f.allGrant(f.redlock(redlock.Config{}), "new")
	f.allGrant(f.open("?skip_verify=true", redlock.Config{}), "open")

	// A server whose certificate cannot be verified has no vote.
	_, err := f.open("", redlock.Config{}).TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.Contains(t, fmt.Sprint(err), "certificate")
	assert.Empty(t, f.has(key))
}

// A client that speaks plain text to a TLS port gets no vote either.
func TestRealAcquireInPlainTextToATLSPort(t *testing.T) {
	f := startFleet(t, 3, redisserver.TLS())
	var urls []string
	for _, s := range f.servers {
		urls = append(urls, "redis://"+s.Addr())
	}
	r, err := redlock.Open(urls, redlock.Config{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close()) }()
	_, err = r.TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.NotErrorIs(t, err, redlock.ErrHeld)
}

// Unix sockets, with Open and with New.
func TestRealAcquireOverAUnixSocket(t *testing.T) {
	f := startFleet(t, 3, redisserver.UnixSocket())
	f.allGrant(f.open("", redlock.Config{}), "open")
	f.allGrant(f.redlock(redlock.Config{}), "new")
}

// The password of a unix URL is used, and is not shown when it is wrong.
func TestRealOpenOfAUnixSocketWithAPassword(t *testing.T) {
	f := startFleet(t, 3, redisserver.UnixSocket(), redisserver.RequirePass(rightPassword))
	f.allGrant(f.open("?db=3", redlock.Config{}), "with a database")
	f.allGrant(f.open("", redlock.Config{}), "without")

	var urls []string
	for _, s := range f.servers {
		u := url.URL{Scheme: "unix", User: url.UserPassword("", wrongPassword), Path: s.Addr()}
		urls = append(urls, u.String())
	}
	r, err := redlock.Open(urls, redlock.Config{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close()) }()
	_, err = r.TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.Contains(t, fmt.Sprint(err), "WRONGPASS")
	assert.NotContains(t, fmt.Sprint(err), wrongPassword)
}

// Another database of the same servers is another keyspace.
func TestRealAcquireInAnotherDatabase(t *testing.T) {
	f := startFleet(t, 3)
	zero, two := f.open("", redlock.Config{}), f.open("/2", redlock.Config{})
	l := f.acquire(zero, key, ttl)
	f.onAll(key, l)
	f.cycle(two, key)
	f.onAll(key, l)
	require.NoError(t, f.release(l))
}
