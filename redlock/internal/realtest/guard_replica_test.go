package realtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// demote makes master i a replica of another, and waits until both have the same data.
func (f *fleet) demote(i, to int) {
	f.Helper()
	require.NoError(f, f.admin[i].Set(f.ctx, "its own", "", time.Hour).Err())
	other := f.servers[to]
	require.NoError(f, f.admin[i].Do(f.ctx, "replicaof", "127.0.0.1", other.Port()).Err())
	f.eventually("it has forgotten", func() bool {
		info, err := f.admin[i].Info(f.ctx, "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up") && len(f.has("its own", i)) == 0
	})
}

func (f *fleet) promote(i int) {
	f.Helper()
	require.NoError(f, f.admin[i].Do(f.ctx, "replicaof", "no", "one").Err())
}

// connection returns master i's id of a named client's only connection.
func (f *fleet) connection(i int, name string) (id string) {
	f.Helper()
	list, err := f.admin[i].ClientList(f.ctx).Result()
	require.NoError(f, err)
	for line := range strings.Lines(list) {
		if strings.Contains(line, " name="+name+" ") {
			require.Empty(f, id, list)
			id, _, _ = strings.Cut(line, " ")
		}
	}
	require.NotEmpty(f, id, list)
	return id
}

// By hand a master is made another's replica, which costs it its memory, and then a master again.
// It is the same process, and connections to it live on. A client finds out, whether or not it was
// busy meanwhile.
func TestRealGuardQuarantinesADemotedMaster(t *testing.T) {
	f := startFleet(t, 4)
	clients := func(name string) []redis.UniversalClient {
		return f.clients(func(o *redis.Options) { o.ClientName = name })[:3]
	}
	busy, idle := f.beside(), f.beside()
	rBusy, rIdle := busy.redlockOf(clients("busy"), realGuarded), idle.redlockOf(clients("idle"), realGuarded)
	busy.counted(rBusy, key)
	idle.counted(rIdle, key)
	last := time.Now()
	was, conn := rIdle.Nodes()[2].Servers[0].RunID, f.connection(2, "idle")

	f.demote(2, 3)
	assert.Contains(t, fmt.Sprint(busy.ask(rBusy, key).Nodes[2].Err), "READONLY")
	busy.ask(rBusy, key)
	assert.ErrorContains(t, rBusy.Nodes()[2].Servers[0].Err, "is a replica")
	f.eventually("an identity is not believed any more", func() bool { return time.Since(last) > time.Second })
	before := time.Now()
	f.promote(2)

	for _, one := range []struct {
		f *fleet
		r *redlock.Redlock
	}{{busy, rBusy}, {idle, rIdle}} {
		node := one.f.ask(one.r, key).Nodes[2] // the first attempt
		assert.Equal(t, quorum.Failed, node.Vote)
		assert.Regexp(t, `quarantined for [0-9.]+m?s: another server took over [0-9.]+m?s ago`, fmt.Sprint(node.Err))
		assert.Equal(t, was, one.r.Nodes()[2].Servers[0].RunID)
	}
	assert.Equal(t, conn, f.connection(2, "idle"), "it has lived on")
	idle.letIn(rIdle, key, 2, before.Add(realGuard))
	busy.letIn(rBusy, key, 2, before.Add(realGuard))
}

// A replica never counts, even if it is writable and grants.
func TestRealGuardExcludesAReplica(t *testing.T) {
	f := startFleet(t, 4)
	require.NoError(t, f.admin[2].ConfigSet(f.ctx, "replica-read-only", "no").Err())
	unguarded := f.beside()
	r := unguarded.redlockOf(f.clients()[:3], redlock.Config{})

	guarded := f.beside()
	rGuarded := guarded.redlockOf(f.clients()[:3], realGuarded)
	guarded.counted(rGuarded, key)
	f.demote(2, 3)
	for range 3 {
		l := unguarded.acquire(r, "writable", ttl)
		unguarded.onAll("writable", l, 2) // without the guard its vote counts
		require.NoError(t, f.release(l))
		unguarded.gone("writable", f.all()...)
	}
	guarded.keptOut(rGuarded, key, 2, "is a replica")
	for range 3 {
		round := guarded.ask(rGuarded, key)
		assert.ErrorContains(t, round.Nodes[2].Err, "is a replica")
		assert.Equal(t, []quorum.Vote{quorum.Granted, quorum.Granted, quorum.Failed}, votes(round))
	}
	// A majority that includes a replica is not a majority.
	require.NoError(t, f.admin[0].Set(f.ctx, key, "somebody else's", time.Hour).Err())
	_, err := rGuarded.TryAcquire(f.ctx, key, realGuard)
	require.ErrorIs(t, err, redlock.ErrHeld)
	assert.ErrorContains(t, err, f.servers[2].Addr()+": is a replica")

	require.NoError(t, f.admin[2].ConfigSet(f.ctx, "replica-read-only", "yes").Err())
	_, err = rGuarded.TryAcquire(f.ctx, key, realGuard)
	require.ErrorIs(t, err, redlock.ErrHeld)
	assert.ErrorContains(t, err, f.servers[2].Addr()+": READONLY")
}

// A promoted replica has lost the identity record with its master's memory. A client that comes
// only then does not count it, although it has been up for long. A client that comes later still
// finds the date in the record.
func TestRealGuardExcludesAPromotedServerWithoutAnIdentityRecord(t *testing.T) {
	f := startFleet(t, 4)
	witness := f.beside()
	witness.counted(witness.redlockOf(f.clients()[:3], realGuarded), key) // leaves records
	for _, s := range f.servers {
		f.notNew(s, realGuard)
	}
	f.demote(2, 3)
	require.Empty(t, f.has("redlock:server", 2))
	before := time.Now()
	f.promote(2)
	for _, which := range []string{"the first", "one that comes later"} {
		fresh := f.beside()
		r := fresh.redlockOf(f.clients()[:3], realGuarded)
		node := fresh.ask(r, key).Nodes[2]
		assert.Equal(t, quorum.Failed, node.Vote, which)
		assert.Regexp(t, `quarantined for [0-9.]+m?s: another server took over [0-9.]+m?s ago`, fmt.Sprint(node.Err), which)
		f.eventually("the record has a date", func() bool {
			record := f.admin[2].Get(f.ctx, "redlock:server").Val()
			return record != "" && !strings.HasSuffix(record, " 0")
		})
		if which != "the first" {
			fresh.letIn(r, key, 2, before.Add(realGuard))
		}
	}
}
