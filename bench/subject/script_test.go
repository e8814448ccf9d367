package subject

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The servers must do the same work for the bounds as for the library. If the library's
// scripts have changed, copy them here.
func TestTheBoundsReleaseWithTheLibrarysScript(t *testing.T) {
	for file, ours := range map[string]string{"release.lua": releaseText, "wake.lua": wakeText} {
		theirs, err := os.ReadFile(filepath.Join("..", "..", "redlock", "internal", "protocol", file))
		require.NoError(t, err)
		assert.Equal(t, string(theirs), ours, file)
	}
	assert.NotContains(t, releaseScript, "--include")
}
