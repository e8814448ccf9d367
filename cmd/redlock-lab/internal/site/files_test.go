package site

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each file of the folder is part of the page, whatever its name begins with.
func TestEachFileOfThePageIsEmbedded(t *testing.T) {
	page, err := pageFiles()
	require.NoError(t, err)
	assert.ElementsMatch(t, filesBelow(t, "page"), slices.Collect(maps.Keys(page)))
	for name, content := range page {
		source, err := os.ReadFile(filepath.Join("page", name))
		require.NoError(t, err)
		assert.Equal(t, string(source), string(content), name)
	}
}
