package redlock_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// node returns a client of an address at which nothing needs to answer.
func node(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// Case 8: redsync takes a drift factor of −5 and reports 48 s of validity for a
// ttl of 8 s; others accept zero tries, or a drift of 2 ns.
func TestNewRefusesBadArgumentsByName(t *testing.T) {
	good := node(t, "127.0.0.1:1")
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer func() { require.NoError(t, ring.Close()) }()
	one := []redis.UniversalClient{good}
	var nilClient *redis.Client
	for _, tc := range []struct {
		name  string
		nodes []redis.UniversalClient
		cfg   redlock.Config
		want  string
	}{
		{"no node", nil, redlock.Config{}, "nodes is empty"},
		{"a nil node", []redis.UniversalClient{good, nil}, redlock.Config{}, "nodes[1] is nil"},
		{"a nil client", []redis.UniversalClient{nilClient}, redlock.Config{}, "nodes[0] is a *redis.Client"},
		{"a zero client", []redis.UniversalClient{good, &redis.Client{}}, redlock.Config{}, "nodes[1] is a *redis.Client"},
		{"a zero cluster", []redis.UniversalClient{&redis.ClusterClient{}}, redlock.Config{}, "nodes[0] is a *redis.ClusterClient"},
		{"a ring", []redis.UniversalClient{good, ring}, redlock.Config{}, "nodes[1] is a *redis.Ring"},
		{"a client of another kind", []redis.UniversalClient{struct{ *redis.Client }{good}}, redlock.Config{}, "nodes[0] is a struct"},
		{"a client twice", []redis.UniversalClient{good, node(t, "127.0.0.1:2"), good}, redlock.Config{}, "nodes[0] and nodes[2]"},
		{"a negative timeout", one, redlock.Config{NodeTimeout: -1}, "Config.NodeTimeout"},
		{"a negative factor", one, redlock.Config{Drift: clock.Drift{Factor: -5}}, "Config.Drift.Factor"},
		{"a factor of 1", one, redlock.Config{Drift: clock.Drift{Factor: 1}}, "Config.Drift.Factor"},
		{"no number", one, redlock.Config{Drift: clock.Drift{Factor: math.NaN()}}, "Config.Drift.Factor"},
		{"a negative floor", one, redlock.Config{Drift: clock.Drift{Floor: -1}}, "Config.Drift.Floor"},
		{"an owner with control characters", one, redlock.Config{Owner: "web\x1b[2J"}, "Config.Owner has the character U+001B, which cannot be printed"},
		{"an owner of two lines", one, redlock.Config{Owner: "web\n"}, "Config.Owner has the character U+000A"},
		{"a long owner", one, redlock.Config{Owner: strings.Repeat("x", 129)}, "Config.Owner has 129 bytes, more than 128"},
		{"an owner in no UTF-8", one, redlock.Config{Owner: "Z\xfcrich"}, "Config.Owner is not valid UTF-8"},
		{"a nil clock", one, redlock.Config{Clock: (*stopped)(nil)}, "Config.Clock"},
		{"a logger without a handler", one, redlock.Config{Logger: &slog.Logger{}}, "Config.Logger"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := redlock.New(tc.nodes, tc.cfg)
			require.Nil(t, r)
			require.ErrorContains(t, err, tc.want)
			assert.True(t, strings.HasPrefix(err.Error(), "redlock: "), err)
			assert.Equal(t, tc.name == "a client twice", errors.Is(err, redlock.ErrDuplicateNode))
		})
	}
}

// stopped is a clock whose pointer may be nil.
type stopped struct{ now time.Time }

func (s *stopped) Now() time.Time { return s.now }

func (s *stopped) NewTimer(time.Duration) clock.Timer { return nil }

func (s *stopped) AfterFunc(time.Duration, func()) (t clock.Timer) { return nil }

func TestAcquireRefusesBadArgumentsByName(t *testing.T) {
	r, err := redlock.New([]redis.UniversalClient{node(t, "127.0.0.1:1")}, redlock.Config{Drift: clock.Drift{Factor: 0.5, Floor: 5 * time.Millisecond}})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for _, acquire := range []func(context.Context, string, time.Duration) error{
		func(c context.Context, k string, d time.Duration) error { _, err := r.TryAcquire(c, k, d); return err },
		func(c context.Context, k string, d time.Duration) error { _, err := r.Acquire(c, k, d); return err },
		func(c context.Context, k string, d time.Duration) error {
			return r.Do(c, k, d, func(context.Context) error { return nil })
		},
	} {
		assert.ErrorContains(t, acquire(ctx, "", ttl), "redlock: key")
		assert.ErrorContains(t, acquire(ctx, key, 0), "redlock: ttl")
		assert.ErrorContains(t, acquire(ctx, key, -time.Second), "redlock: ttl")
		assert.ErrorContains(t, acquire(ctx, key, 9*time.Millisecond), "redlock: ttl")
		assert.ErrorContains(t, acquire(ctx, key, 12*time.Millisecond), "drift", "6 ms and 5 ms leave no round trip")
		var none context.Context
		assert.ErrorContains(t, acquire(none, key, ttl), "redlock: ctx")
	}
	assert.ErrorContains(t, r.Do(ctx, key, ttl, nil), "redlock: fn")
}

func TestAcquireWithVeryLongTTLs(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l, err := b.Redlock.TryAcquire(ctx, key, 100*365*24*time.Hour)
		require.NoError(t, err)
		l.KeepAlive()
		require.NoError(t, l.Extend(ctx, math.MaxInt64/2))
		require.NoError(t, l.Release(ctx))
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

func TestOpenRefusesBadURLsWithoutShowingThem(t *testing.T) {
	const secret = "hunter2"
	for _, tc := range []struct{ url, want string }{
		{"", "is empty"},
		{"localhost:6379", "does not begin with"},
		{"http://:hunter2@h", "does not begin with"},
		{"hunter2", "does not begin with"},
		{"redis://:hunter2/x@host:6379", "not a URL"},
		{"redis://:hunter2@host:port", "not a URL"},
		{"redis://:%zzhunter2@host", "not a URL"},
		{"redis://host:1/hunter2", "path or query"},
		{"redis://host:1/0?hunter2=1", "path or query"},
		{"redis://host:1/-1", "negative"},
		{"redis://host:1?db=-1", "negative"},
		{"redis://host:1/0/1", "path or query"},
		{"redis://:x@host?dial_timeout=hunter2", "path or query"},
		{"unix://", "socket path"},
		{"redis://h?pool_size=-5", "pool_size"},
		{"redis://user:123#hunter2@host:6379", "#"},
		{"redis://hunter2#x@h", "#"},
		{"unix://:12/hunter2@/tmp/s.sock", "socket path"},
		{"unix://:x@hunter2/s.sock", "socket path"},
		{"redis://h:99999", "port"},
		{"redis://h:0", "port"},
		{"redis://h?pool_size=99999999999", "pool_size"},
		{"redis://ho st/", "not a URL"},
		{"redis://\x00", "not a URL"},
	} {
		r, err := redlock.Open([]string{"redis://127.0.0.1:1", tc.url}, redlock.Config{})
		if !assert.Error(t, err, tc.url) {
			require.NoError(t, r.Close())
			continue
		}
		assert.ErrorContains(t, err, tc.want, tc.url)
		assert.ErrorContains(t, err, "redlock: urls[1] ")
		assert.NotContains(t, err.Error(), secret)
	}
	_, err := redlock.Open(nil, redlock.Config{})
	assert.ErrorContains(t, err, "urls is empty")
	_, err = redlock.Open([]string{"redis://h"}, redlock.Config{NodeTimeout: -1})
	assert.ErrorContains(t, err, "Config.NodeTimeout")
	for _, twice := range [][]string{
		{"redis://h", "redis://H:6379"},
		{"redis://a:b@h/1", "redis://h/2"},
		{"unix:///s?db=1", "unix:///s"},
	} {
		_, err = redlock.Open(twice, redlock.Config{})
		assert.ErrorIs(t, err, redlock.ErrDuplicateNode, twice)
	}
}

// almost has durations to which nothing, or next to nothing, can be added.
var almost = []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - time.Second, math.MaxInt64 / 100 * 99}

// A field with the largest duration works as documented: sums of durations do not wrap around.
func TestAcquireWithTheLargestDurations(t *testing.T) {
	for _, most := range almost {
		for name, cfg := range map[string]redlock.Config{
			"NodeTimeout":    {NodeTimeout: most},
			"FenceRetention": {FenceRetention: most, Fencing: true},
			"ttl":            {Drift: clock.Drift{Floor: 1}},
			"ttl, fenced":    {FenceRetention: most, Fencing: true},
			"Drift.Factor":   {Drift: clock.Drift{Factor: 0.99}},
		} {
			virtual.Run(t, 3, cfg, func(b *virtual.Bed) {
				ttl := ttl
				if name != "NodeTimeout" && name != "FenceRetention" {
					ttl = most
				}
				start := time.Now()
				l, err := b.Redlock.TryAcquire(ctx, key, ttl)
				require.NoError(b, err, "%s %v", name, most)
				left := clock.Validity(ttl.Truncate(time.Millisecond), 0, cfg.Drift)
				if cfg.Drift == (clock.Drift{}) {
					left = clock.Validity(ttl.Truncate(time.Millisecond), 0, clock.DefaultDrift)
				}
				assert.Equal(b, left, l.Until().Sub(start), "%s %v", name, most)
				require.NoError(b, l.Extend(ctx, ttl))
				l.KeepAlive()
				b.Settle()
				require.NoError(b, l.Context().Err())
				waiting, stop := context.WithCancel(ctx)
				done := make(chan error)
				go func() {
					_, err := b.NewRedlock(cfg).Acquire(waiting, key, ttl)
					done <- err
				}()
				b.Settle()
				stop()
				require.ErrorIs(b, <-done, context.Canceled)
				b.Release(l)
			})
		}
	}
}

// A guard of the largest duration keeps out every server, because none has been up for that long.
func TestAcquireWithTheLargestGuard(t *testing.T) {
	for _, most := range almost {
		for name, cfg := range map[string]redlock.Config{
			"the drift is a part": {RestartGuard: most},
			"the drift is fixed":  {RestartGuard: most, Drift: clock.Drift{Floor: time.Second}},
		} {
			virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
				s := b.NewRedlock(cfg)
				_, err := s.TryAcquire(ctx, key, ttl)
				require.ErrorIs(b, err, redlock.ErrNoQuorum, "%s %v", name, most)
				assert.ErrorContains(b, err, "quarantined for", "%s %v", name, most)
				b.Settle() // the error was certain after two answers
				assert.True(b, s.Nodes()[0].Servers[0].Quarantine.After(time.Now().AddDate(200, 0, 0)))
			})
		}
	}
}
