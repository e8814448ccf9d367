package virtual

import (
	"context"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// Inspect inspects Key with r, and checks what holds for every inspection.
func (b *Bed) Inspect(r *redlock.Redlock) *redlock.Inspection {
	b.Helper()
	i, err := r.Inspect(context.Background(), Key)
	require.NoError(b, err)
	require.Equal(b, Key, i.Key)
	require.Equal(b, b.Masters.Len()/2+1, i.Need)
	require.Len(b, i.Nodes, b.Masters.Len())
	for n := range i.Nodes {
		require.Equal(b, b.Masters.Master(n).Addr(), i.Nodes[n].Addr)
	}
	return i
}

// ForceRelease breaks the lock that an inspection has seen, and asserts on which masters it was
// deleted.
func (b *Bed) ForceRelease(i *redlock.Inspection, want ...int) {
	b.Helper()
	deleted, err := b.Redlock.ForceRelease(context.Background(), i)
	require.NoError(b, err)
	assert.Equal(b, b.Addrs(want...), deleted)
	b.Settle()
}

// Addrs lists the addresses of masters.
func (b *Bed) Addrs(of ...int) (all []string) {
	for _, i := range of {
		all = append(all, b.Masters.Master(i).Addr())
	}
	return all
}
