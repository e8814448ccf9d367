package realtest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// wakes lets a release of one Redlock end a wait of the other. It reports whether the wait ended
// without a look of its own. The keys have a prefix on the masters; said counts the waiting
// Redlock's commands.
func (f *fleet) wakes(holder, r *redlock.Redlock, prefix string, said []*spoken) (woken bool) {
	f.Helper()
	l := f.acquire(holder, key, time.Hour)
	f.onAll(prefix+key, l)
	w := f.wait(r, key, ttl)
	f.queued(prefix+key, 1)
	f.heard(prefix + key)
	tries, looks := total(said, "try"), total(said, "enqueue")
	require.NoError(f, f.release(l))
	l = w.got()
	woken = total(said, "enqueue") == looks
	assert.LessOrEqual(f, total(said, "try"), tries+2*len(said), "it does not poll")
	require.NoError(f, f.release(l))
	f.clean(prefix + key)
	return woken
}

// Waiting works however the clients reach the masters.
func TestRealReleaseWakesAnyClient(t *testing.T) {
	for name, way := range map[string]struct {
		servers   []redisserver.Option
		configure func(*redis.Options)
		cfg       redlock.Config
	}{
		"RESP2":                    {configure: func(o *redis.Options) { o.Protocol = 2 }},
		"RESP3":                    {configure: func(o *redis.Options) { o.Protocol = 3 }},
		"one connection":           {configure: func(o *redis.Options) { o.PoolSize = 1 }},
		"a short read timeout":     {configure: func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond }},
		"contexts have deadlines":  {configure: func(o *redis.Options) { o.ContextTimeoutEnabled = true }},
		"TLS":                      {servers: []redisserver.Option{redisserver.TLS()}},
		"unix socket":              {servers: []redisserver.Option{redisserver.UnixSocket()}},
		"password":                 {servers: []redisserver.Option{redisserver.RequirePass(rightPassword)}},
		"prefix":                   {cfg: redlock.Config{KeyPrefix: "lock:"}},
		"prefix with a tag":        {cfg: redlock.Config{KeyPrefix: "{app}:"}},
		"fencing":                  {cfg: redlock.Config{Fencing: true}},
		"fair":                     {cfg: redlock.Config{Fair: true}},
		"fair, fencing and prefix": {cfg: redlock.Config{Fair: true, Fencing: true, KeyPrefix: "lock:"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 3, way.servers...)
			if way.configure == nil {
				way.configure = func(*redis.Options) {}
			}
			clients := f.clients(way.configure)
			said := overhear(way.cfg.KeyPrefix+key, clients)
			holder, r := f.redlockOf(f.clients(way.configure), way.cfg), f.redlockOf(clients, way.cfg)
			woken := 0
			for range 4 { // a slow machine may make one look
				if f.wakes(holder, r, way.cfg.KeyPrefix, said) {
					woken++
				}
			}
			assert.Positive(t, woken)
		})
	}
}

// The same holds for the clients that Open makes, also in another database.
func TestRealReleaseWakesARedlockOfOpen(t *testing.T) {
	for name, way := range map[string]struct {
		servers []redisserver.Option
		suffix  string
	}{
		"plain":            {},
		"RESP3":            {suffix: "?protocol=3"},
		"one connection":   {suffix: "?pool_size=1"},
		"TLS":              {servers: []redisserver.Option{redisserver.TLS()}, suffix: "?skip_verify=true"},
		"unix socket":      {servers: []redisserver.Option{redisserver.UnixSocket()}},
		"another database": {suffix: "/2"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 3, way.servers...)
			if name == "another database" {
				for i, s := range f.servers {
					f.admin[i] = s.Client(func(o *redis.Options) { o.DB = 2 })
				}
			}
			all := []*redlock.Redlock{f.open(way.suffix, redlock.Config{}), f.open(way.suffix, redlock.Config{}), f.open(way.suffix, redlock.Config{})}
			l := f.hold(all[0], key)
			line := f.line(key, ttl, all[1:]...)
			f.heard(key)
			require.NoError(t, f.release(l))
			f.takeTurns(line)
			f.clean(key)
		})
	}
}

// A client with a single connection serves its application while a Redlock waits on it.
func TestRealAcquireSharesTheOnlyConnectionWhileItWaits(t *testing.T) {
	f := startFleet(t, 3)
	clients := f.clients(func(o *redis.Options) { o.PoolSize = 1 })
	holder, r := f.redlock(redlock.Config{}), f.redlockOf(clients, redlock.Config{})
	l := f.hold(holder, key)
	w := f.wait(r, key, ttl)
	f.queued(key, 1)
	f.heard(key)
	for range 50 {
		for _, c := range clients {
			require.NoError(t, c.Ping(f.ctx).Err())
		}
	}
	require.NoError(t, f.release(l))
	require.NoError(t, f.release(w.got()))
	f.nobodyWaits()
}

// One node is a master under a Sentinel, which fails over while several clients wait. The other
// nodes wake them meanwhile, and the promoted master takes part afterwards.
func TestRealAcquireWaitsWhileASentinelFailsOver(t *testing.T) {
	for name, fail := range map[string]func(f *fleet, s *redisserver.Sentinel, old *redisserver.Server) error{
		"killed": func(_ *fleet, s *redisserver.Sentinel, old *redisserver.Server) error {
			return s.AwaitFailover(func() error { old.Kill(); return nil })
		},
		"deposed": func(_ *fleet, s *redisserver.Sentinel, _ *redisserver.Server) error { return s.Failover() },
	} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 2)
			s := redisserver.StartSentinel(t)
			managed := func() *redlock.Redlock {
				return f.redlockOf(append([]redis.UniversalClient{s.Client()}, f.clients()...), redlock.Config{})
			}
			all := []*redlock.Redlock{managed(), managed(), managed(), managed()}
			old, err := s.Master()
			require.NoError(t, err)
			l := f.hold(all[0], key)
			line := f.line(key, ttl, all[1:3]...)
			require.NoError(t, fail(f, s, old))
			line = append(line, f.wait(all[3], key, ttl))
			f.queued(key, 3)
			require.NoError(t, f.release(l))
			f.takeTurns(line)

			promoted, err := s.Master()
			require.NoError(t, err)
			require.NotEqual(t, old.Addr(), promoted.Addr())
			f.allGrantAgain(all[0], "after")
			f.clean(key)
			client := promoted.Client()
			f.eventually("nothing is left on the promoted one", func() bool {
				left, err := client.Keys(f.ctx, "redlock:queue*").Result()
				return err == nil && len(left) == 0 && client.Exists(f.ctx, key).Val() == 0
			})
		})
	}
}
