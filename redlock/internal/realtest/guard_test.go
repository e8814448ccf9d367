package realtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// realGuard is how long tests in real time keep servers out. Servers that were just started are
// kept out too, so each of these tests first waits that long.
const realGuard = 3 * time.Second

var realGuarded = redlock.Config{RestartGuard: realGuard}

// beside returns the same masters with a separate record of rounds, for one Redlock.
func (f *fleet) beside() *fleet {
	return &fleet{T: f.T, ctx: f.ctx, servers: f.servers, admin: f.admin}
}

// ask makes one attempt, releases the lock, and returns the vote of every node.
func (f *fleet) ask(r *redlock.Redlock, key string) redlock.Trace {
	f.Helper()
	before := len(f.rounds.of("acquire", key))
	l, err := r.TryAcquire(f.ctx, key, realGuard)
	f.eventually("the round is finished", func() bool { return len(f.rounds.of("acquire", key)) > before })
	if err == nil {
		_ = f.release(l) // its ttl is short
	}
	return f.rounds.of("acquire", key)[before]
}

// counted waits until the votes of all nodes count.
func (f *fleet) counted(r *redlock.Redlock, key string) {
	f.Helper()
	f.eventually("all votes count", func() bool { return granted(f.ask(r, key)) })
}

// keptOut waits until a node's vote does not count for the reason why.
func (f *fleet) keptOut(r *redlock.Redlock, key string, node int, why string) {
	f.Helper()
	f.eventually(why, func() bool { return strings.Contains(fmt.Sprint(f.ask(r, key).Nodes[node].Err), why) })
}

// letIn waits until a node that is kept out votes again. It fails if that happens before notBefore.
func (f *fleet) letIn(r *redlock.Redlock, key string, node int, notBefore time.Time) {
	f.Helper()
	f.eventually("its votes count again", func() bool { return f.ask(r, key).Nodes[node].Vote == quorum.Granted })
	assert.False(f, time.Now().Before(notBefore), "too early")
}

// notNew waits until a server has been up for so long that the guard does not keep it out.
func (f *fleet) notNew(s *redisserver.Server, period time.Duration) {
	f.Helper()
	client := s.Client()
	f.eventually("it has been up for long", func() bool {
		info, err := client.InfoMap(f.ctx, "server").Result()
		require.NoError(f, err)
		uptime, err := time.ParseDuration(info["Server"]["uptime_in_seconds"] + "s")
		require.NoError(f, err)
		return uptime > period+time.Second
	})
}

// holder is a client with links of its own to the masters.
type holder struct {
	*fleet
	links []*redisserver.Link
	r     *redlock.Redlock
}

// newcomer returns a client that has never connected to the masters.
func (f *fleet) newcomer(cfg redlock.Config) *holder {
	f.Helper()
	h := &holder{fleet: f.beside(), links: f.links()}
	// No command is sent again, and no connection dialled again without the lane's knowledge. Bytes
	// that a cut link has held back never arrive.
	once := func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 }
	h.r = h.redlockOf(h.through(h.links, once), cfg)
	return h
}

// holder returns a client that has asked all masters, whose votes all count.
func (f *fleet) holder(cfg redlock.Config) *holder {
	f.Helper()
	h := f.newcomer(cfg)
	h.counted(h.r, "warm up")
	return h
}

// holdBy012 is the first half of the hole in Redlock: a holds the key by masters 0, 1 and 2, and 2
// forgets it. Masters 3 and 4 have no key of a's, and will not get one. It returns a time before
// the restart of 2.
func (a *holder) holdBy012(ttl time.Duration) (l *redlock.Lock, forgot time.Time) {
	a.Helper()
	for _, i := range []int{3, 4} {
		a.links[i].Refuse()
		a.links[i].Break()
	}
	l = a.acquire(a.r, key, ttl)
	for i, n := range a.round("acquire", key).Nodes {
		want := quorum.Granted
		if i > 2 {
			want = quorum.Failed
		}
		require.Equal(a, want, n.Vote, "node %d", i)
	}
	require.Equal(a, []int{0, 1, 2}, a.has(key, a.all()...))
	forgot = time.Now()
	a.kill(2)
	a.restart(2)
	for _, i := range []int{3, 4} {
		require.NoError(a, a.links[i].Accept())
	}
	require.Equal(a, []int{0, 1}, a.has(key, a.all()...))
	return l, forgot
}

// This is the hole as the paper describes it: a master that comes back without its memory votes a
// second time, and two clients hold one lock.
func TestRealAcquireWithoutTheGuardTwiceAfterAMasterForgot(t *testing.T) {
	f := startFleet(t, 5)
	const long = 30 * time.Second
	a, b := f.holder(redlock.Config{}), f.holder(redlock.Config{})
	first, _ := a.holdBy012(long)
	second, err := b.r.Acquire(f.ctx, key, long) // the first attempt finds a broken connection
	require.NoError(t, err)
	assert.True(t, time.Now().Before(first.Until()), "the first is valid")
	assert.NoError(t, first.Context().Err())
	assert.NoError(t, second.Context().Err())
	f.onAll(key, first, 0, 1)
	f.onAll(key, second, 2, 3, 4)
}

// onlyBecauseOf2 has the votes of B's round. B would have won with 2, which granted like 3 and 4.
var onlyBecauseOf2 = []quorum.Vote{quorum.Refused, quorum.Refused, quorum.Failed, quorum.Granted, quorum.Granted}

// With the guard, the votes of 2 do not count until the locks that it may have forgotten are over,
// and B gets in after A's lock has ended. B may know the server from before, or learn only from its
// uptime that it is new.
func TestRealGuardExcludesAMasterThatForgot(t *testing.T) {
	const period = 5 * time.Second
	for name, test := range map[string]struct {
		cfg redlock.Config
		b   func(*fleet, redlock.Config) *holder
	}{
		"B is new":                           {redlock.Config{RestartGuard: period}, (*fleet).newcomer},
		"B knows the server, and has tokens": {redlock.Config{RestartGuard: period, Fencing: true}, (*fleet).holder},
	} {
		t.Run(name, func(t *testing.T) {
			f, cfg := startFleet(t, 5), test.cfg
			for _, s := range f.servers {
				f.notNew(s, period) // not new even for B, if B is a newcomer
			}
			a, b := f.holder(cfg), test.b(f, cfg)
			was := a.r.Nodes()[2].Servers[0].RunID
			first, forgot := a.holdBy012(period)

			var second *redlock.Lock
			kept := 0
			f.eventually("B gets in", func() bool {
				rounds := len(b.rounds.of("acquire", key))
				l, err := b.r.TryAcquire(f.ctx, key, period)
				if err == nil {
					second = l
					return true
				}
				if !time.Now().Before(first.Until()) {
					return false
				}
				require.ErrorIs(t, err, redlock.ErrHeld)
				f.eventually("the round is finished", func() bool { return len(b.rounds.of("acquire", key)) > rounds })
				said := votes(b.rounds.of("acquire", key)[rounds])
				if !strings.Contains(fmt.Sprint(err), "quarantined") || !slices.Equal(said, onlyBecauseOf2) {
					return false // an old connection broke, or 3 and 4 were not asked
				}
				kept++
				assert.Regexp(t, b.links[2].Addr()+`: quarantined for [0-9.]+m?s: restarted [0-9.]+m?s ago`, fmt.Sprint(err))
				for _, i := range []int{0, 1} {
					assert.Contains(t, fmt.Sprint(err), b.links[i].Addr()+": has somebody else's value")
				}
				s := b.r.Nodes()[2].Servers[0]
				assert.NotEqual(t, was, s.RunID)
				assert.ErrorContains(t, s.Err, "restarted")
				assert.False(t, s.Quarantine.Before(forgot.Add(period)))
				return false
			})
			assert.False(t, time.Now().Before(first.Until()), "two holders")
			assert.Positive(t, kept, "refused because of 2")
			if cfg.Fencing {
				assert.Greater(t, second.FencingToken(), first.FencingToken())
			}
			_ = b.release(second)

			b.letIn(b.r, "afterwards", 2, forgot.Add(period))
			assert.NoError(t, b.r.Nodes()[2].Servers[0].Err)
			select {
			case <-first.Context().Done():
				assert.ErrorIs(t, context.Cause(first.Context()), redlock.ErrExpired)
			case <-f.ctx.Done():
				require.FailNow(t, "A never learns that its lock is over")
			}
		})
	}
}

// votes returns the final vote of each node.
func votes(round redlock.Trace) (all []quorum.Vote) {
	for _, n := range round.Nodes {
		all = append(all, n.Vote)
	}
	return all
}
