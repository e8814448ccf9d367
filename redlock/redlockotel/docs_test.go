package redlockotel_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
)

// instrument is an instrument as the documentation has it.
type instrument struct {
	kind, unit string
	attributes []string
}

// documented returns the table of metrics in docs/observability.md.
func documented(t testing.TB) map[string]instrument {
	t.Helper()
	files, err := filepath.Glob("../../docs/observability*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	row := regexp.MustCompile("(?m)^\\| `(redlock[.a-z]+)` \\| ([a-z -]+) \\| `([^`]+)` \\| ([^|]*)\\| ")
	quoted := regexp.MustCompile("`([^`]+)`")
	found := map[string]instrument{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, cells := range row.FindAllStringSubmatch(string(text), -1) {
			var attributes []string
			for _, name := range quoted.FindAllStringSubmatch(cells[4], -1) {
				attributes = append(attributes, name[1])
			}
			slices.Sort(attributes)
			found[cells[1]] = instrument{cells[2], cells[3], attributes}
		}
	}
	return found
}

// docs/observability.md lists every instrument, with its kind, its unit and its attributes, and no
// other.
func TestDocumentedMetrics(t *testing.T) {
	observed(t, virtual.Guarded, func(o *telemetry, b *virtual.Bed) {
		keyed(b)
		require.NoError(b, b.Masters.Master(1).RestartEmpty())
		for range 2 { // the connection has broken, and there is a new one
			lock := b.Acquire(key, ttl)
			time.Sleep(time.Second)
			require.NoError(b, lock.Release(b.Context()))
		}
		found := map[string]instrument{}
		for name, m := range o.instruments() {
			kind, points := points(m)
			found[name] = instrument{kind, m.Unit, attributeKeys(points)}
			assert.NotEmpty(b, m.Description, name)
			for _, p := range points {
				if kind == "histogram" {
					assert.NotContains(b, p.bounds, 10000., "%s has the boundaries for milliseconds", name)
				}
			}
		}
		assert.Equal(b, documented(b), found)
	})
}
