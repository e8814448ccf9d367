package subject

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The bounds must make the servers do what the library does. If the library's
// script has changed, copy it here.
func TestTheBoundsReleaseWithTheLibrarysScript(t *testing.T) {
	theirs, err := os.ReadFile(filepath.Join("..", "..", "redlock", "release.lua"))
	require.NoError(t, err)
	assert.Equal(t, string(theirs), releaseScript)
}
