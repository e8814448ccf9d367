package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The edits of the table must still match the source of the library.
func TestEveryBugCanBePlanted(t *testing.T) {
	dir, err := root(context.Background())
	require.NoError(t, err)
	names := map[string]bool{}
	for _, m := range mutants {
		o, err := m.apply(dir, t.TempDir())
		assert.NoError(t, err)
		assert.NotEmpty(t, o.Replace)
		assert.False(t, names[m.name], "two bugs are called %s", m.name)
		names[m.name] = true
	}
}

// Hunts one bug from build to result. The command without arguments hunts all.
func TestABugIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	dir, err := root(context.Background())
	require.NoError(t, err)
	c, err := hunt(context.Background(), dir, mutants[0], 20)
	require.NoError(t, err)
	assert.NotZero(t, c.seed)
	assert.NotEmpty(t, c.how)
	survivor := mutant{bug: bug{name: "none", edits: one("redlock/doc.go", "package redlock\n", "package redlock\n")}}
	c, err = hunt(context.Background(), dir, survivor, 3)
	require.NoError(t, err)
	assert.Zero(t, c.seed, "without a bug nothing is found")
}

func TestTheTableHasItsPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(file, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o666))
	require.NoError(t, record(file, []catch{{mutant{bug: bug{name: "a", story: "b"}}, 7, "c"}, {mutant{bug: bug{name: "d", story: "e"}}, 0, ""}}))
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
	names := map[string]bool{}
	for _, part := range []string{"1/3", "2/3", "3/3"} {
		some, err := share(mutants, part)
		require.NoError(t, err)
		for _, m := range some {
			assert.False(t, names[m.name])
			names[m.name] = true
		}
	}
	assert.Len(t, names, len(mutants))
	for _, bad := range []string{"", "0/3", "4/3", "x", "1/0"} {
		_, err := share(mutants, bad)
		assert.ErrorContains(t, err, "-part")
	}
}
