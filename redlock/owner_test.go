package redlock_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func TestInspectNamesTheOwner(t *testing.T) {
	for _, cfg := range []redlock.Config{{Owner: "report worker 3"}, {Owner: "report worker 3", Fencing: true}, {Owner: "report worker 3", Fair: true}} {
		virtual.Run(t, 5, cfg, func(b *virtual.Bed) {
			time.Sleep(1500 * time.Millisecond)
			asked := time.Now().Truncate(time.Second)
			b.Acquire(key, ttl)
			time.Sleep(3 * time.Second)
			i := b.Inspect(b.Redlock)
			owner, since := i.Owner()
			assert.Equal(b, "report worker 3", owner)
			assert.True(b, asked.Equal(since), "%v, not %v", since, asked)
			for _, n := range i.Nodes {
				assert.Equal(b, "report worker 3", n.Owner)
				assert.Empty(b, n.Foreign())
			}
		})
	}
}

func TestInspectNamesHostAndProcessByDefault(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		b.Acquire(key, ttl)
		host, err := os.Hostname()
		require.NoError(b, err)
		owner, _ := b.Inspect(b.Redlock).Owner()
		assert.Equal(b, fmt.Sprintf("%s pid %d", host, os.Getpid()), owner)
	})
}

// A minority's value says nothing of the owner, nor does a value of another program, whatever it
// has behind its UUID.
func TestInspectNamesNoOwnerWithoutALabel(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Owner: "us"}, func(b *virtual.Bed) {
		owner, since := b.Inspect(b.Redlock).Owner()
		assert.Empty(b, owner, "of a free key")
		assert.Zero(b, since)
		for m, value := range []string{laid("A"), laid("B") + " 5 other", laid("C") + " 5 \x1b[2Jother"} {
			require.NoError(b, b.Redis(m).Set(key, value))
			b.Redis(m).SetTTL(key, time.Minute)
		}
		i := b.Inspect(b.Redlock)
		owner, since = i.Owner()
		assert.Empty(b, owner, "without a majority")
		assert.Zero(b, since)
		assert.Equal(b, []string{"", "other", ""}, []string{i.Nodes[0].Owner, i.Nodes[1].Owner, i.Nodes[2].Owner})
		assert.Empty(b, i.Nodes[0].Foreign(), "a lock of a client without labels")
		assert.Equal(b, "its value is no UUID", i.Nodes[2].Foreign())
	})
}

// A lock that was waited for is the holder's from the attempt that was granted, not from the first.
func TestInspectSinceTheGrant(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		holder := b.Acquire(key, ttl)
		got := make(chan *redlock.Lock)
		go func() {
			l, err := b.Redlock.Acquire(ctx, key, ttl)
			assert.NoError(b, err)
			got <- l
		}()
		time.Sleep(5 * time.Second)
		released := time.Now().Truncate(time.Second)
		require.NoError(b, holder.Release(ctx))
		<-got
		_, since := b.Inspect(b.Redlock).Owner()
		assert.True(b, released.Equal(since), "%v, not %v", since, released)
	})
}
