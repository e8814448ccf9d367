package voter_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// address is the third node's address in a bed of three nodes and more servers. It leads to one
// server at a time.
type address struct {
	*virtual.Bed
	third *virtual.Movable
}

// moving runs f in a bubble with two plain nodes, and one whose address can be given to another
// server. It can lead to masters 2 to n-1.
func moving(t *testing.T, n int, f func(a *address)) {
	t.Helper()
	virtual.Run(t, n, redlock.Config{}, func(b *virtual.Bed) { f(&address{b, virtual.NewMovable(b.Masters.Master(2))}) })
}

// guarded makes one more client with the guard, on the two nodes and the address.
func (a *address) guarded() *redlock.Redlock {
	a.Helper()
	nodes := a.Masters.Clients()[:2]
	nodes = append(nodes, a.Masters.Master(2).Client(func(o *redis.Options) { o.Dialer = a.third.Dial }))
	r, err := redlock.New(nodes, virtual.Guarded)
	require.NoError(a, err)
	a.Cleanup(func() { require.NoError(a, r.Close()) })
	return r
}

// lead gives the address to master i and breaks the connections to its predecessor.
func (a *address) lead(i int) { a.third.Moves(a.Masters.Master(i), 0) }

// look makes the client ask all three nodes, over new connections where old ones broke.
func (a *address) look(r *redlock.Redlock) {
	a.Helper()
	for range 2 {
		a.Redis(0).Del(key)
		l, err := r.TryAcquire(ctx, key, ttl)
		a.Settle()
		if err == nil {
			require.NoError(a, l.Release(ctx))
		}
		a.Settle()
	}
}

// excluded returns why the third node's votes do not count for the client.
func (a *address) excluded(r *redlock.Redlock) error { return r.Nodes()[2].Servers[0].Err }

// twoMeetThePromoted has a new client meet a server that was just promoted, and another one 4 s later.
// Another client has the key, so that the vote of that server would decide.
func twoMeetThePromoted(b *virtual.Bed) {
	b.Helper()
	_, err := b.NewRedlock(virtual.Guarded).TryAcquire(ctx, key, ttl)
	require.ErrorIs(b, err, redlock.ErrHeld)
	assert.ErrorContains(b, err, "quarantined for 10.1s: another server took over 0s ago")
	time.Sleep(4 * time.Second)
	_, err = b.NewRedlock(virtual.Guarded).TryAcquire(ctx, key, ttl)
	assert.ErrorContains(b, err, "quarantined for 6.1s: another server took over 4s ago", "the first has written since when")
}

// A replica whose master had lost the identity record is promoted, and a client is the first to
// meet it. The replica may have forgotten locks, and is in quarantine from now.
func TestIdentityRecordMissingOnAPromotedServer(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		b.Warm()
		b.Steal(key, time.Hour, 0)
		require.NoError(b, b.Masters.Master(2).FailOver()) // it has no keys, not even the record
		twoMeetThePromoted(b)
		time.Sleep(7 * time.Second)
		b.Redis(0).Del(key)
		third := b.NewRedlock(virtual.Guarded)
		b.Release(b.Take(third))
		assert.NoError(b, third.Nodes()[2].Servers[0].Err, "it costs one guard, once")
	})
}

// An address goes from one independent server to another and back. The date in the
// returning server's identity record is from its earlier stay.
func TestGuardExcludesAServerThatComesBackToItsAddress(t *testing.T) {
	moving(t, 4, func(a *address) {
		witness := a.guarded()
		a.look(witness)
		a.lead(3)
		a.look(witness) // dates the record of 3
		require.ErrorContains(a, a.excluded(witness), "another server took over 0s ago")
		time.Sleep(virtual.Quarantine)
		a.lead(2)
		a.look(witness)
		require.ErrorContains(a, a.excluded(witness), "another server took over 0s ago")
		time.Sleep(virtual.Quarantine)
		for _, back := range []int{3, 2} {
			idle := a.guarded()
			a.look(idle)
			a.look(witness)
			require.NoError(a, a.excluded(witness))
			time.Sleep(5 * time.Second)
			a.lead(back)
			a.look(witness)
			assert.ErrorContains(a, a.excluded(witness), "quarantined for 10.1s: another server took over 0s ago")
			time.Sleep(4 * time.Second)
			a.look(idle)
			assert.ErrorContains(a, a.excluded(idle), "quarantined for 6.1s: another server took over 4s ago", "by the record")
			fresh := a.guarded()
			a.look(fresh)
			assert.ErrorContains(a, a.excluded(fresh), "quarantined for 6.1s: another server took over 4s ago", "the record has the new date")
			time.Sleep(virtual.Quarantine)
		}
	})
}

// A client has seen a server, slept while its address led to another one, and sees it
// again. A client that saw the other one has dated the record.
func TestIdentityRecordGainsADate(t *testing.T) {
	moving(t, 4, func(a *address) {
		idle, witness := a.guarded(), a.guarded()
		a.look(idle)
		a.lead(3)
		a.look(witness)
		a.lead(2)
		a.look(witness)
		time.Sleep(3 * time.Second)
		a.look(idle)
		assert.ErrorContains(a, a.excluded(idle), "quarantined for 7.1s: another server took over 3s ago")
	})
}

// A server that was never a replica takes over an address. A client that saw the server
// before it dates the identity record, and a client that comes later heeds the date.
func TestIdentityRecordDateOfAServerThatWasNeverAReplica(t *testing.T) {
	moving(t, 4, func(a *address) {
		witness := a.guarded()
		a.look(witness)
		a.lead(3)
		a.look(witness)
		time.Sleep(3 * time.Second)
		fresh := a.guarded()
		a.Steal(key, time.Hour, 0)
		_, err := fresh.TryAcquire(ctx, key, ttl)
		require.ErrorIs(a, err, redlock.ErrHeld)
		assert.ErrorContains(a, err, "quarantined for 7.1s: another server took over 3s ago")
	})
}

// The first dated record is lost, and a client that knows of no takeover writes one without a date.
// The client that knows of the takeover writes the date again.
func TestIdentityRecordIsWrittenAgainWhenLost(t *testing.T) {
	for name, lose := range map[string]func(a *address){
		"it is gone":         func(a *address) {},
		"another is undated": func(a *address) { a.look(a.guarded()) },
	} {
		moving(t, 4, func(a *address) {
			witness := a.guarded()
			a.look(witness)
			a.lead(3)
			a.look(witness)
			a.Redis(3).Del("redlock:server")
			lose(a)
			time.Sleep(3 * time.Second)
			a.look(witness)
			assert.ErrorContains(a, a.excluded(witness), "took over 3s ago", name)
			time.Sleep(time.Second)
			fresh := a.guarded()
			a.look(fresh)
			assert.ErrorContains(a, a.excluded(fresh), "quarantined for 6.1s: another server took over 4s ago", name)
		})
	}
}

// A server that no client has met has the identity record of another, perhaps from a backup.
func TestIdentityRecordOfAnotherServer(t *testing.T) {
	moving(t, 4, func(a *address) {
		require.NoError(a, a.Redis(2).Set("redlock:server", "someone:else 0"))
		fresh := a.guarded()
		a.look(fresh)
		assert.ErrorContains(a, a.excluded(fresh), "quarantined for 10.1s: another server took over 0s ago")
	})
}

// An identity is trusted for a second from the moment when the question was sent, because the
// answer may have been under way for longer.
func TestGuardAsksAgainASecondAfterItSentTheQuestion(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{RestartGuard: virtual.GuardFor, NodeTimeout: 3 * time.Second}, func(b *virtual.Bed) {
		third := b.Masters.Master(2)
		b.Release(b.Take(b.Redlock))
		b.Settle()
		time.Sleep(990 * time.Millisecond)
		// This keeps the connection in use, on which the node is asked.
		b.Release(b.Take(b.Redlock))
		time.Sleep(50 * time.Millisecond)
		third.Delay(0, 900*time.Millisecond)
		b.Redis(1).Set(key, "somebody else")
		l, err := b.Redlock.TryAcquire(ctx, key, ttl)
		require.NoError(b, err)
		third.Demote()
		third.Promote()
		third.Delay(0, 0)
		_ = l.Release(ctx)
		time.Sleep(200 * time.Millisecond)
		_, err = b.Redlock.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld)
		assert.ErrorContains(b, err, "another server took over")
	})
}

// A server that was never a replica and has no identity record may vote; otherwise no first
// deployment would work. A server that was restarted with its memory has the record of the process
// before. If no client saw the restart, that costs one guard, once.
func TestGuardCountsAServerWithoutAnIdentityRecord(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		b.Release(b.Take(b.Redlock))
		for i, n := range b.Redlock.Nodes() {
			assert.NoError(b, n.Servers[0].Err)
			assert.True(b, b.Redis(i).Exists("redlock:server"))
			require.NoError(b, b.Masters.Master(i).Restart())
		}
		time.Sleep(virtual.Quarantine + time.Second)
		_, err := b.NewRedlock(virtual.Guarded).TryAcquire(ctx, key, ttl)
		require.ErrorContains(b, err, "quarantined for 10.1s: another server took over 0s ago")
		time.Sleep(virtual.Quarantine)
		for range 2 {
			b.Release(b.Take(b.NewRedlock(virtual.Guarded)))
		}
	})
	virtual.Run(t, 1, redlock.Config{KeyPrefix: "p:", RestartGuard: virtual.GuardFor}, func(b *virtual.Bed) {
		b.Warm()
		b.Warm()
		assert.Equal(b, []string{"p:redlock:server"}, b.Redis(0).Keys())
	})
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Warm()
		assert.Empty(b, b.Redis(0).Keys(), "without the guard there is none")
	})
}

// One batch is enough to write an identity record, even over the only connection of a client.
func TestGuardWritesTheIdentityRecordAtOnce(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		client := b.Masters.Master(0).Client(func(o *redis.Options) { o.PoolSize = 1 })
		r, err := redlock.New([]redis.UniversalClient{client}, virtual.Guarded)
		require.NoError(b, err)
		l := b.Take(r)
		b.Settle()
		assert.True(b, b.Redis(0).Exists("redlock:server"))
		b.Release(l)
		require.NoError(b, r.Close())
	})
}

// A client that knows of a promotion records it for others, even after a client that did not know
// has left an identity record without a date.
func TestGuardAddsADateToAnIdentityRecord(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		b.Warm()
		b.Masters.Master(2).Miniredis().Del("redlock:server")
		require.NoError(b, b.Masters.Master(2).FailOver())
		b.Release(b.Take(b.NewRedlock(virtual.Guarded))) // it does not know
		for range 2 {                                    // it knows
			b.Cycle(b.Redlock)
		}
		fresh := b.NewRedlock(virtual.Guarded)
		l := b.Take(fresh)
		b.Settle()
		assert.ErrorContains(b, fresh.Nodes()[2].Servers[0].Err, "another server took over")
		b.Release(l)
	})
}
