package realtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// A waiter asks for a queue entry, and checks now and then that the entry is still there. It does
// not try to take the key before the release wakes it, and then tries once.
func TestRealReleaseWakes(t *testing.T) {
	f := startFleet(t, 3)
	holder, clients := f.redlock(redlock.Config{}), f.clients()
	said := overhear(key, clients) // before the first connection
	r := f.redlockOf(clients, redlock.Config{})
	f.listening(r)

	woken := 0
	for range 3 {
		l := f.hold(holder, key)
		sets, tries, looks := total(said, "set"), total(said, "try"), total(said, "enqueue")
		w := f.wait(r, key, ttl)
		f.queued(key, 1)
		f.eventually("it looks by itself", func() bool { return total(said, "enqueue") > looks+len(said) })
		assert.Equal(t, tries, total(said, "try"), "that is no attempt")
		require.False(t, w.over())

		looks = total(said, "enqueue")
		require.NoError(t, f.release(l))
		l = w.got()
		if total(said, "enqueue") == looks {
			woken++
		}
		tries = total(said, "try") - tries
		assert.GreaterOrEqual(t, tries, 2)
		assert.LessOrEqual(t, tries, 2*len(said), "when it was woken, and where that was too early again")
		assert.LessOrEqual(t, total(said, "set")-sets, len(said))
		require.NoError(t, f.release(l))
		f.clean(key)
	}
	assert.Positive(t, woken, "it need not look again")
}

// The first of all waits must also connect its subscriptions. It is still woken.
func TestRealReleaseWakesTheFirstWaitOfAll(t *testing.T) {
	f := startFleet(t, 5)
	all := f.redlocks(2, redlock.Config{})
	l := f.acquire(all[0], key, time.Hour)
	line := f.line(key, ttl, all[1])
	f.heard(key)
	require.NoError(t, f.release(l))
	require.NoError(t, f.release(line[0].got()))
	f.clean(key)
}

// First come, first served, even among clients that do not know each other.
func TestRealAcquireFirstComeFirstServed(t *testing.T) {
	f := startFleet(t, 5)
	all := f.redlocks(7, redlock.Config{})
	f.listening(all[1:]...)
	for round := range 3 {
		l := f.hold(all[0], key)
		line := f.line(key, ttl, all[1:]...)
		require.NoError(t, f.release(l))
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5}, f.takeTurns(line), "round %d", round)
		f.clean(key)
	}
}

// A holder that dies wakes nobody. The first in the queue looks when the key expires. Its regular
// looks would be after 1 s, 3 s and 7 s.
func TestRealAcquireAfterTheHolderDies(t *testing.T) {
	f := startFleet(t, 3)
	holder, clients := f.redlock(redlock.Config{}), f.clients()
	said := overhear(key, clients) // before the first connection
	r := f.redlockOf(clients, redlock.Config{})
	f.listening(r)
	l := f.acquire(holder, key, 4*time.Second)
	f.onAll(key, l)
	w := f.wait(r, key, ttl)
	f.queued(key, 1)
	mine := w.got()
	assert.LessOrEqual(t, total(said, "enqueue"), len(said)+2, "the third look was not needed")
	require.ErrorIs(t, f.release(l), redlock.ErrNotHeld)
	require.NoError(t, f.release(mine))
	f.nobodyWaits()
}

// Several clients are in the queue, and each holds the lock until it expires.
func TestRealAcquireAfterEveryHolderDies(t *testing.T) {
	f := startFleet(t, 3)
	all := f.redlocks(4, redlock.Config{})
	f.acquire(all[0], key, time.Second)
	line := f.line(key, time.Second, all[1:]...)
	for _, w := range line {
		w.got() // the holder sends nothing more
	}
	f.clean(key)
}

// A client of another library deletes the key, which wakes nobody. A waiter finds out by itself,
// although the key would have lived for an hour.
func TestRealAcquireFindsAKeyThatAForeignClientDeleted(t *testing.T) {
	for name, which := range map[string][]int{"everywhere": {0, 1, 2}, "on a majority": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 3)
			r := f.redlock(redlock.Config{})
			for _, a := range f.admin {
				require.NoError(t, a.Set(f.ctx, key, "somebody else's", time.Hour).Err())
			}
			line := f.line(key, ttl, r)
			f.heard(key)
			for _, i := range which {
				require.NoError(t, f.admin[i].Del(f.ctx, key).Err())
			}
			require.NoError(t, f.release(line[0].got()))
			f.nobodyWaits()
		})
	}
}

// Keys may have any bytes. Each has a queue.
func TestRealAcquireQueuesForStrangeKeys(t *testing.T) {
	for _, prefix := range []string{"", "lock:", "{app}:", "}:{", "a b\n"} {
		t.Run(fmt.Sprintf("%q", prefix), func(t *testing.T) {
			f := startFleet(t, 3)
			cfg := redlock.Config{KeyPrefix: prefix}
			clients := f.clients()
			said := overhear("", clients)
			all := []*redlock.Redlock{f.redlock(cfg), f.redlockOf(clients, cfg)}
			keys := []string{
				"plain", "{a}b", "a}b", "{}x", "}{", "a{b", "{", "}", "{{a}}", "a{}", " ", "sp ace", " lead", "trail ",
				"line\nfeed", "\r\n", "\x00\xff", "ключ}", "%s", "@", "@ {x} ", "redlock", strings.Repeat("long", 2560),
			}
			for i, k := range keys {
				l := f.acquire(all[0], k, time.Hour)
				f.onAll(prefix+k, l)
				w := f.wait(all[1], k, ttl)
				f.queued(prefix+k, 1)
				if i == 0 {
					f.heard(prefix + k)
				}
				assert.Equal(t, f.all(), f.has(flagKey(prefix+k)), k)
				require.NoError(t, f.release(l))
				require.NoError(t, f.release(w.got()))
				f.clean(prefix + k)
			}
			// A waiter that is not woken would look at all nodes once more for each key.
			assert.LessOrEqual(t, total(said, "enqueue"), 2*len(keys)*len(said))
		})
	}
}

// The message that wakes names the key, so a client that waits for many is woken for the right
// ones.
func TestRealAcquireOfManyKeysAtOnce(t *testing.T) {
	f := startFleet(t, 3)
	holder, clients := f.redlock(redlock.Config{}), f.clients()
	r := f.redlockOf(clients, redlock.Config{})
	f.listening(r)
	const keys = 40
	var locks []*redlock.Lock
	var waits []*waiting
	for i := range keys {
		locks = append(locks, f.acquire(holder, fmt.Sprint(i), time.Hour))
		waits = append(waits, f.wait(r, fmt.Sprint(i), ttl))
	}
	for i := range keys {
		f.queued(fmt.Sprint(i), 1)
	}
	for i := keys - 1; i >= 0; i -= 2 {
		require.NoError(t, f.release(locks[i]))
		require.NoError(t, f.release(waits[i].got()))
	}
	for i := 0; i < keys; i += 2 {
		require.False(t, waits[i].over())
		require.NoError(t, f.release(locks[i]))
	}
	for i := 0; i < keys; i += 2 {
		require.NoError(t, f.release(waits[i].got()))
	}
	f.nobodyWaits()
}
