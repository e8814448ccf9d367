package waitqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// invariant checks every node and key. The flag exists if and only if the queue does, because
// without the flag no release would look at the queue. A queue has at least one entry. If the key
// is free and there is a queue, its first entry has been woken and still has time to come.
func invariant(b *virtual.Bed, keys []string, step int) {
	b.Helper()
	for i := range b.Masters.Len() {
		for _, key := range keys {
			queue, flag := b.Redis(i).Exists("redlock:queue:{"+key+"}"), b.Redis(i).Exists("redlock:queued:{"+key+"}")
			require.Equal(b, queue, flag, "step %d, node %d, %s: a queue, a flag", step, i, key)
			who := b.Queued(i, key)
			require.Equal(b, queue, len(who) > 0, "step %d, node %d, %s: a queue of nobody", step, i, key)
			if queue && !b.Redis(i).Exists(key) {
				by, err := b.Redis(i).ZScore("redlock:queue:{"+key+"}", "@"+who[0])
				require.NoError(b, err, "step %d, node %d, %s: free, and %s was not told", step, i, key, who[0])
				require.LessOrEqual(b, by, float64(time.Now().Add(time.Second).UnixMilli()))
			}
		}
	}
}

// walk lets five Redlocks take, release and give up three keys as a seed decides, on links that
// delay by up to jitter. After every step it checks that no key has two holders and that the nodes'
// queues are in order. At the end it checks that each Redlock has had its turn.
func walk(b *virtual.Bed, seed uint64, jitter time.Duration, cfg redlock.Config) {
	random := rand.New(rand.NewPCG(seed, 7))
	keys := []string{"a", "b", "c"}
	parties := b.ReadyParties(5, cfg)
	for i, p := range parties {
		if jitter > 0 {
			jitterPaths(p, seed*10+uint64(i), jitter)
		}
	}
	type turn struct {
		*virtual.Waiter
		key string
	}
	var waits []turn
	held := map[string]*redlock.Lock{}
	collect := func() {
		rest := waits[:0]
		for _, w := range waits {
			switch {
			case !w.Over():
				rest = append(rest, w)
			case w.Err == nil:
				require.Nil(b, held[w.key], "two holders")
				held[w.key] = w.Lock
			default:
				require.ErrorIs(b, w.Err, context.Canceled)
			}
		}
		waits = rest
	}
	release := func(key string) {
		l := held[key]
		delete(held, key)
		require.NoError(b, l.Release(ctx))
	}
	for step := range 150 {
		key := keys[random.IntN(len(keys))]
		switch n := random.IntN(10); {
		case n < 5:
			waits = append(waits, turn{parties[random.IntN(len(parties))].Wait(key, time.Hour), key})
		case n < 8 && held[key] != nil:
			release(key)
		case len(waits) > 0:
			waits[random.IntN(len(waits))].Cancel()
		}
		if random.IntN(3) == 0 { // otherwise the next comes at the same time
			time.Sleep(time.Duration(random.ExpFloat64() * float64(jitter+time.Millisecond)))
		}
		b.Settle()
		collect()
		invariant(b, keys, step)
	}
	began := time.Now()
	for len(waits) > 0 || len(held) > 0 {
		for _, key := range keys {
			if held[key] != nil {
				release(key)
			}
		}
		time.Sleep(jitter + time.Millisecond)
		b.Settle()
		collect()
		invariant(b, keys, -1)
		require.LessOrEqual(b, time.Since(began), time.Minute, "%d wait for ever", len(waits))
	}
	time.Sleep(2 * time.Second)
	b.Settle()
	invariant(b, keys, -2)
	for _, key := range keys {
		assert.Empty(b, b.Has(key))
	}
}

func TestAcquireOnARandomWalk(t *testing.T) {
	virtual.Crowded(t)
	for seed := range uint64(6) {
		for _, jitter := range []time.Duration{0, 5 * time.Millisecond} {
			for name, cfg := range map[string]redlock.Config{"plain": {}, "fair": {Fair: true}, "fencing": {Fencing: true}} {
				ok := t.Run(fmt.Sprint(seed, jitter, name), func(t *testing.T) {
					virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
						walk(b, seed, jitter, cfg)
						b.NoQueues()
					})
				})
				if !ok {
					return
				}
			}
		}
	}
}
