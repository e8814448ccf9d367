package realtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// way is how a node hangs: it accepts connections and bytes, and answers nothing.
type way struct {
	name string
	// prepare returns clients of the masters, and functions that hang and resume one master.
	prepare func(f *fleet, configure ...func(*redis.Options)) (clients []redis.UniversalClient, hang, resume func(i int))
}

var ways = []way{
	{"SIGSTOP", func(f *fleet, configure ...func(*redis.Options)) ([]redis.UniversalClient, func(int), func(int)) {
		return f.clients(configure...),
			func(i int) { require.NoError(f, f.servers[i].Pause()) },
			func(i int) { require.NoError(f, f.servers[i].Resume()) }
	}},
	{"dead link", func(f *fleet, configure ...func(*redis.Options)) ([]redis.UniversalClient, func(int), func(int)) {
		links := f.links()
		return f.through(links, configure...),
			func(i int) { links[i].Stall() },
			func(i int) { links[i].Resume() }
	}},
}

// links puts a proxy in front of every master.
func (f *fleet) links() (all []*redisserver.Link) {
	f.Helper()
	for _, s := range f.servers {
		all = append(all, redisserver.NewLink(f, s.Addr()))
	}
	return all
}

// through returns clients that connect through the links.
func (f *fleet) through(links []*redisserver.Link, configure ...func(*redis.Options)) (all []redis.UniversalClient) {
	for i, s := range f.servers {
		via := func(o *redis.Options) { o.Addr = links[i].Addr() }
		all = append(all, s.Client(append(configure, via)...))
	}
	return all
}

// Case 1: two of five hung nodes cost nothing, with or without earlier connections. The Redlock
// would wait an hour for a node, and some clients would wait an hour for a reply. If a step waited,
// it would not return. With default clients, a step that waited would return after their three
// seconds. The rounds' traces show that each was decided before the hung nodes answered.
func TestRealAcquireWithTwoOfFiveHungCostsNothing(t *testing.T) {
	for _, way := range ways {
		for _, clients := range []struct {
			name      string
			configure func(*redis.Options)
		}{
			{"default clients", func(*redis.Options) {}},
			{"patient clients", func(o *redis.Options) { o.ReadTimeout = time.Hour }},
		} {
			for _, warm := range []bool{true, false} {
				name := way.name + ", " + clients.name
				if warm {
					name += ", connected"
				}
				t.Run(name, func(t *testing.T) {
					f := startFleet(t, 5)
					all, hang, resume := way.prepare(f, clients.configure)
					r := f.redlockOf(all, redlock.Config{NodeTimeout: time.Hour})
					t.Cleanup(func() { resume(1); resume(4) }) // Close would wait for them
					if warm {
						f.allGrant(r, "warm up")
					}
					hang(1)
					hang(4)
					f.cycle(r, key)
					f.gone(key, 0, 2, 3)
					resume(1)
					resume(4)

					for _, op := range []string{"acquire", "extend", "release"} {
						round := f.round(op, key)
						assert.Equal(t, quorum.Won, round.Outcome, op)
						late := 0 // votes after the decision
						for _, n := range round.Nodes {
							if n.Vote != quorum.Granted || n.Latency > round.Elapsed {
								late++
							}
						}
						assert.GreaterOrEqual(t, late, 2, "%s was decided without two of them", op)
					}
					f.gone(key)
				})
			}
		}
	}
}

// Three of five nodes hang, so operations return ErrNoQuorum. As soon as the nodes answer, no key
// is left: the SETs that waited in their sockets are executed then, and the keys deleted.
func TestRealAcquireWithThreeOfFiveHung(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := startFleet(t, 5)
			all, hang, resume := way.prepare(f)
			r := f.redlockOf(all, redlock.Config{NodeTimeout: 200 * time.Millisecond})
			f.connect(r)
			held := f.acquire(r, "held", time.Hour)
			require.True(t, granted(f.round("acquire", "held"))) // so that no lane is busy
			before := f.sets()
			for i := range 3 {
				hang(i)
			}
			_, err := r.TryAcquire(f.ctx, key, time.Hour)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			assert.NotErrorIs(t, err, redlock.ErrHeld)
			assert.NotErrorIs(t, err, f.ctx.Err())
			assert.Contains(t, fmt.Sprint(err), "no answer within 200ms")
			f.gone(key, 3, 4)

			err = held.Extend(f.ctx, time.Hour)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.NoError(t, held.Context().Err())
			require.ErrorIs(t, f.release(held), redlock.ErrNoQuorum)
			f.gone("held", 3, 4)

			for i := range 3 {
				resume(i)
			}
			for i := range 3 {
				f.eventually("the late SET has been executed", func() bool { return f.calls(i, "set") > before[i] })
			}
			f.gone(key)
			f.gone("held")
			l, err := r.Acquire(f.ctx, key, ttl)
			require.NoError(t, err)
			require.NoError(t, f.release(l))
			f.gone(key)
		})
	}
}
