package errs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func TestErrorsCutServerMessagesBeforeTheyQuote(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		for _, m := range b.Masters.All()[:2] {
			m.Miniredis().SetError("ERR unknown command 'SET', with args beginning with: 'orders' 'secret-value' ")
		}
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		for _, m := range b.Masters.All() {
			m.Miniredis().SetError("")
		}
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.Contains(t, err.Error(), "unknown command 'SET'")
		assert.NotContains(t, err.Error(), "secret-value")
	})
}

func TestErrorsPrintNoValue(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		for _, m := range b.Masters.All() {
			m.Miniredis().SetError("ERR I do not like " + l.Value())
		}
		extend := l.Extend(ctx, ttl)
		release := l.Release(ctx)
		for _, m := range b.Masters.All() {
			m.Miniredis().SetError("")
		}
		for _, err := range []error{extend, release} {
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			assert.Contains(t, err.Error(), "I do not like")
			assert.NotContains(t, err.Error(), l.Value())
		}
	})
}

func TestErrorsShortenLongKeys(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		long := strings.Repeat("\x00", 1<<20)
		l := b.Acquire(long, ttl)
		_, err := b.Redlock.TryAcquire(ctx, long, ttl)
		require.ErrorIs(t, err, redlock.ErrHeld)
		assert.Less(t, len(err.Error()), 1000)
		var failed *redlock.QuorumError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, long, failed.Key)
		assert.Less(t, len(fmt.Sprint(l)), 1000)
	})
}
