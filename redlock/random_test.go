package redlock_test

import (
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// counted counts the bytes that are read of a source.
type counted struct {
	source io.Reader
	n      atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.source.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// A cloned machine has what was read ahead, and would give its locks the same values.
func TestAcquireReadsNoRandomBytesAhead(t *testing.T) {
	values := func() (all []string) {
		source := &counted{source: rand.NewChaCha8([32]byte{7})}
		virtual.Run(t, 3, redlock.Config{Rand: source}, func(b *virtual.Bed) {
			for range 3 {
				before := source.n.Load()
				l := b.Acquire(key, time.Second)
				assert.Equal(t, before+16, source.n.Load(), "one value")
				id, err := uuid.Parse(l.Value())
				require.NoError(t, err)
				assert.Equal(t, uuid.Version(4), id.Version())
				assert.Equal(t, uuid.RFC4122, id.Variant())
				all = append(all, l.Value())
				require.NoError(t, l.Release(ctx))
			}
		})
		return all
	}
	first := values()
	assert.Equal(t, first, values(), "one seed, one run")
	assert.NotEqual(t, first[0], first[1])
}
