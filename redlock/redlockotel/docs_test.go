package redlockotel_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// documentation returns a section of docs/observability.md.
func documentation(t testing.TB, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/observability.md")
	require.NoError(t, err)
	_, section, found := strings.Cut("\n"+string(text), "\n## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// instrument is an instrument as the documentation has it.
type instrument struct {
	kind, unit string
	attributes []string
}

// documented returns the table of metrics.
func documented(t testing.TB) map[string]instrument {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `(redlock[.a-z]+)` \\| ([a-z -]+) \\| `([^`]+)` \\| ([^|]*)\\| ")
	quoted := regexp.MustCompile("`([^`]+)`")
	found := map[string]instrument{}
	for _, cells := range row.FindAllStringSubmatch(documentation(t, "Metrics"), -1) {
		var attributes []string
		for _, name := range quoted.FindAllStringSubmatch(cells[4], -1) {
			attributes = append(attributes, name[1])
		}
		slices.Sort(attributes)
		found[cells[1]] = instrument{cells[2], cells[3], attributes}
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

// The spans and events of a session have the attributes that the documentation lists, and no other.
func TestDocumentedSpans(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		keyed(b)
		ofSpans, ofRounds, found := strings.Cut(documentation(b, "Traces"), "\n| attribute of `redlock.round` |")
		require.True(b, found)
		row := regexp.MustCompile("(?m)^\\| (`[^|]*) \\|")
		names := func(table string) (names []string) {
			for _, cells := range row.FindAllStringSubmatch(table, -1) {
				names = append(names, strings.Split(strings.Trim(cells[1], "`"), "`, `")...)
			}
			slices.Sort(names)
			return names
		}
		spans, rounds := map[string]string{}, map[string]string{}
		for _, span := range o.ended() {
			maps.Copy(spans, attributes(span.Attributes))
			for _, event := range span.Events {
				assert.Equal(b, "redlock.round", event.Name)
				maps.Copy(rounds, attributes(event.Attributes))
			}
		}
		assert.Equal(b, names(ofSpans), slices.Sorted(maps.Keys(spans)))
		assert.Equal(b, names(ofRounds), slices.Sorted(maps.Keys(rounds)))
	})
}

// The code of the documentation is a part of the tests, so that it is compiled.
func TestDocumentedCode(t *testing.T) {
	unindent := func(text string) string { return regexp.MustCompile("(?m)^\t+").ReplaceAllString(text, "") }
	var compiled strings.Builder
	for _, file := range []string{"example_test.go", "goredis_test.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		compiled.Write(text)
	}
	text := documentation(t, "Metrics") + documentation(t, "go-redis' own instrumentation")
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(text, -1)
	require.Len(t, blocks, 4)
	for _, block := range blocks {
		code := strings.TrimRight(unindent(block[1]), ")\n") // a call's closing parenthesis may have a comma behind it
		assert.True(t, strings.Contains(unindent(compiled.String()), code), block[1])
	}
}
