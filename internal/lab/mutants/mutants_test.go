package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planted returns the folder of the module, and all bugs.
func planted(t *testing.T) (string, []mutant) {
	dir, err := root(context.Background())
	require.NoError(t, err)
	all, err := load(dir)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return dir, all
}

// The test hunts one bug from build to result. The command without arguments hunts all.
func TestABugIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	dir, all := planted(t)
	bugs := map[string]mutant{}
	for _, m := range all {
		bugs[m.name] = m
	}
	require.Contains(t, bugs, "quorum-too-small")
	c, err := hunt(context.Background(), dir, bugs["quorum-too-small"], 20)
	require.NoError(t, err)
	assert.NotZero(t, c.seed)
	assert.NotEmpty(t, c.how)
	doc, err := os.ReadFile(filepath.Join(dir, "redlock/doc.go"))
	require.NoError(t, err)
	survivor, err := mutant{name: "none"}.changing(dir, t.TempDir(), map[string]string{"redlock/doc.go": string(doc) + "\n// Harmless.\n"})
	require.NoError(t, err)
	c, err = hunt(context.Background(), dir, survivor, 3)
	require.NoError(t, err)
	assert.Zero(t, c.seed, "without a bug nothing is found")
}

func TestTheTableHasItsPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(file, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o666))
	require.NoError(t, record(file, []catch{{mutant{name: "a", story: "b"}, 7, "c"}, {mutant{name: "d", story: "e"}, 0, ""}}))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "before\n"+begin+`
| planted bug | what it does | found by seed | broken rule |
|---|---|---|---|
| `+"`a`"+` | b | 7 | c |
| `+"`d`"+` | e | **survives** | – |

`+end+"after\n", string(text))
	require.NoError(t, os.WriteFile(file, []byte("no marks"), 0o666))
	assert.ErrorContains(t, record(file, nil), "no place")
}

func TestThePartsAreAll(t *testing.T) {
	_, all := planted(t)
	names := map[string]bool{}
	for _, part := range []string{"1/3", "2/3", "3/3"} {
		some, err := share(all, part)
		require.NoError(t, err)
		for _, m := range some {
			assert.False(t, names[m.name])
			names[m.name] = true
		}
	}
	assert.Len(t, names, len(all))
	for _, bad := range []string{"", "0/3", "4/3", "x", "1/0"} {
		_, err := share(all, bad)
		assert.ErrorContains(t, err, "-part")
	}
}
