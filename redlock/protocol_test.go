package redlock_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// With RESP3 go-redis asks the kernel for push messages before each command, which
// nobody sends us.
func TestOpenSpeaksRESP2UnlessToldOtherwise(t *testing.T) {
	masters := redlocktest.Start(t, 1)
	for query, version := range map[string]string{"": "2", "?protocol=3": "3"} {
		masters.Master(0).ResetCommands()
		r, err := redlock.Open([]string{masters.URLs()[0] + query}, redlock.Config{})
		require.NoError(t, err)
		_, err = r.TryAcquire(ctx, key, ttl)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		assert.True(t, slices.ContainsFunc(masters.Master(0).Commands(), func(c []string) bool {
			return c[0] == "HELLO" && c[1] == version
		}), "%q: %v", query, masters.Master(0).Commands())
	}
}
