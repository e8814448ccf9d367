package realtest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// fleet is some real masters and the test that uses them.
type fleet struct {
	*testing.T
	ctx     context.Context // ends when something hangs
	servers []*redisserver.Server
	admin   []*redis.Client // connections that no Redlock uses
	rounds  recorder        // the rounds of all Redlocks of this fleet
}

const (
	// hang is longer than anything here takes on a loaded machine.
	hang = 40 * time.Second

	// patience is the NodeTimeout of most tests: the masters of a loaded machine are slow, but do
	// not fail. No operation that works waits for it.
	patience = 10 * time.Second
)

// startFleet starts n masters for a test that runs beside others.
func startFleet(t *testing.T, n int, opts ...redisserver.Option) *fleet {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeoutCause(context.Background(), hang, errors.New("the test hangs"))
	t.Cleanup(cancel)
	f := &fleet{T: t, ctx: ctx, servers: redisserver.Start(t, n, opts...)}
	for _, s := range f.servers {
		admin := s.Client()
		require.NoError(t, admin.Ping(ctx).Err()) // its handshake comes before the test
		f.admin = append(f.admin, admin)
	}
	return f
}

// clients returns a client for each master, with go-redis' default options as changed by configure.
func (f *fleet) clients(configure ...func(*redis.Options)) (all []redis.UniversalClient) {
	for _, s := range f.servers {
		all = append(all, s.Client(configure...))
	}
	return all
}

// redlock makes a Redlock on clients with default options. It is closed with the test.
func (f *fleet) redlock(cfg redlock.Config) *redlock.Redlock {
	f.Helper()
	return f.redlockOf(f.clients(), cfg)
}

func (f *fleet) config(cfg redlock.Config) redlock.Config {
	cfg.Trace = f.rounds.add
	if cfg.NodeTimeout == 0 {
		cfg.NodeTimeout = patience
	}
	return cfg
}

// redlockOf makes a Redlock on the clients. It is closed with the test.
func (f *fleet) redlockOf(clients []redis.UniversalClient, cfg redlock.Config) *redlock.Redlock {
	f.Helper()
	r, err := redlock.New(clients, f.config(cfg))
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, r.Close()) })
	return r
}

// open makes a Redlock on the masters' URLs with suffix. It is closed with the test.
func (f *fleet) open(suffix string, cfg redlock.Config) *redlock.Redlock {
	f.Helper()
	var urls []string
	for _, s := range f.servers {
		urls = append(urls, s.URL()+suffix)
	}
	r, err := redlock.Open(urls, f.config(cfg))
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, r.Close()) })
	return r
}

func (f *fleet) acquire(r *redlock.Redlock, key string, ttl time.Duration) *redlock.Lock {
	f.Helper()
	l, err := r.TryAcquire(f.ctx, key, ttl)
	require.NoError(f, err)
	return l
}

// release releases the lock, but does not wait for ever if Release, which takes no deadline, does.
func (f *fleet) release(l *redlock.Lock) error {
	done := make(chan error, 1)
	go func() { done <- l.Release(f.ctx) }()
	select {
	case err := <-done:
		return err
	case <-f.ctx.Done():
		return context.Cause(f.ctx)
	}
}

// cycle acquires, extends and releases a lock.
func (f *fleet) cycle(r *redlock.Redlock, key string) {
	f.Helper()
	l := f.acquire(r, key, ttl)
	require.NoError(f, l.Extend(f.ctx, 2*ttl))
	require.NoError(f, f.release(l))
}

// eventually polls a condition for which there is no event.
func (f *fleet) eventually(what string, holds func() bool) {
	f.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-f.ctx.Done():
			require.FailNow(f, "never: "+what)
		}
	}
}

// all returns the index of every master.
func (f *fleet) all() (which []int) {
	for i := range f.servers {
		which = append(which, i)
	}
	return which
}

// of returns these masters, or all if there are none.
func (f *fleet) of(masters []int) []int {
	if len(masters) == 0 {
		return f.all()
	}
	return masters
}

// has returns those of the masters that have the key. They must answer. No masters mean all, here
// and in the methods below.
func (f *fleet) has(key string, masters ...int) (which []int) {
	f.Helper()
	for _, i := range f.of(masters) {
		n, err := f.admin[i].Exists(f.ctx, key).Result()
		require.NoError(f, err)
		if n > 0 {
			which = append(which, i)
		}
	}
	return which
}

// onAll waits until the key has the lock's value on these masters: a caller leaves at the quorum,
// and the other masters follow.
func (f *fleet) onAll(key string, l *redlock.Lock, masters ...int) {
	f.Helper()
	for _, i := range f.of(masters) {
		f.eventually(fmt.Sprintf("master %d has our value", i), func() bool {
			return f.admin[i].Get(f.ctx, key).Val() == l.Value()
		})
	}
}

// hold acquires a key for an hour, on all masters.
func (f *fleet) hold(r *redlock.Redlock, key string) *redlock.Lock {
	f.Helper()
	l := f.acquire(r, key, time.Hour)
	f.onAll(key, l)
	return l
}

// gone waits until none of the masters has the key.
func (f *fleet) gone(key string, masters ...int) {
	f.Helper()
	f.eventually("nothing of "+key+" is left", func() bool { return len(f.has(key, masters...)) == 0 })
}

var statCalls = regexp.MustCompile(`calls=(\d+)`)

// calls returns how often master i has executed a command since its start.
func (f *fleet) calls(i int, command string) int {
	f.Helper()
	stats, err := f.admin[i].InfoMap(f.ctx, "commandstats").Result()
	require.NoError(f, err)
	for _, section := range stats {
		if m := statCalls.FindStringSubmatch(section["cmdstat_"+command]); m != nil {
			n, err := strconv.Atoi(m[1])
			require.NoError(f, err)
			return n
		}
	}
	return 0
}
