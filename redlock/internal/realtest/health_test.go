package realtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// A master that answers but takes no write would not vote: one that is out of memory, and one that
// was made a replica.
func TestRealHealthyFindsMastersThatTakeNoWrite(t *testing.T) {
	f := startFleet(t, 3)
	r := f.redlock(redlock.Config{NodeTimeout: patience})
	require.NoError(t, r.Healthy(f.ctx))

	require.NoError(t, f.admin[0].ConfigSet(f.ctx, "maxmemory", "1").Err())
	require.NoError(t, r.Healthy(f.ctx), "two others vote")
	require.NoError(t, f.admin[1].Do(f.ctx, "replicaof", "127.0.0.1", "1").Err())
	err := r.Healthy(f.ctx)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.ErrorContains(t, err, "OOM")
	assert.ErrorContains(t, err, "READONLY")

	require.NoError(t, f.admin[0].ConfigSet(f.ctx, "maxmemory", "0").Err())
	require.NoError(t, r.Healthy(f.ctx))
	for _, admin := range f.admin {
		assert.Zero(t, admin.DBSize(f.ctx).Val(), "it writes nothing")
	}
}
