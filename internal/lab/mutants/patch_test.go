package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The patches must still apply to the source of the library.
func TestEveryBugCanBePlanted(t *testing.T) {
	dir, all := planted(t)
	names := map[string]bool{}
	for _, m := range all {
		text, err := m.apply(dir, t.TempDir())
		if !assert.NoError(t, err, "if code has moved: go run ./internal/lab/mutants -refresh") {
			continue
		}
		assert.NotEmpty(t, text, m.name)
		for file, now := range text {
			was, err := os.ReadFile(filepath.Join(dir, file))
			assert.NoError(t, err)
			assert.NotEqual(t, string(was), now, "%s changes nothing in %s", m.name, file)
		}
		assert.NoError(t, rehash(dir, text), m.name)
		assert.False(t, names[m.name], "two bugs are called %s", m.name)
		names[m.name] = true
	}
}

// abc is a bug that turns the b between a and c into B.
const abc = `b is B
found by: sim --fair

--- a/room/file
+++ b/room/file
@@ -1,3 +1,3 @@
 a
-b
+B
 c
`

func TestAPatchAppliesAtOnePlace(t *testing.T) {
	for _, test := range []struct{ name, file, want, refused string }{
		{name: "at its line", file: "a\nb\nc\n", want: "a\nB\nc\n"},
		{name: "further down", file: "1\n2\n3\n4\na\nb\nc\n5\n", want: "1\n2\n3\n4\na\nB\nc\n5\n"},
		{name: "beside other lines", file: "a\nb\nd\na\nb\nc\n", want: "a\nb\nd\na\nB\nc\n"},
		{name: "at two places", file: "a\nb\nc\nd\na\nb\nc\n", refused: "bug.patch: ambiguous"},
		{name: "at one of three", file: "a\nb\nc\na\nb\nc\na\nb\nc\n", refused: "bug.patch: ambiguous"},
		{name: "nowhere", file: "a\nB\nc\n", refused: "room/file"},
		{name: "with another neighbour", file: "a\nb\nd\n", refused: "room/file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, writeFiles(root, map[string]string{"room/file": test.file}))
			m, err := parse("bug.patch", abc)
			require.NoError(t, err)
			text, err := m.apply(root, t.TempDir())
			if test.refused != "" {
				assert.ErrorContains(t, err, test.refused)
			} else {
				require.NoError(t, err)
				assert.Equal(t, map[string]string{"room/file": test.want}, text)
			}
			source, err := os.ReadFile(filepath.Join(root, "room/file"))
			require.NoError(t, err)
			assert.Equal(t, test.file, string(source), "the source stays as it is")
		})
	}
	m, err := parse("bug.patch", abc)
	require.NoError(t, err)
	_, err = m.apply(t.TempDir(), t.TempDir())
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestAPatchHasAHeader(t *testing.T) {
	m, err := parse("room/bug.patch", abc)
	require.NoError(t, err)
	assert.Equal(t, "bug", m.name)
	assert.Equal(t, "b is B", m.story)
	assert.Equal(t, []string{"--fair"}, m.flags)
	assert.Empty(t, m.test)
	assert.Equal(t, abc, m.String())
	const tested = "b is B\nfound by: TestB/of_two\n\n--- a/x\n"
	m, err = parse("bug.patch", tested)
	require.NoError(t, err)
	assert.Equal(t, "TestB/of_two", m.test)
	assert.Empty(t, m.flags)
	assert.Equal(t, tested, m.String())
	for _, bad := range []string{"", "story\n\n--- a/x\n", "story\nfound by: luck\n\n", "found by: sim\n\n", "story\nfound by: simple\n\n", "story\nfound by: sim\n--- a/x\n"} {
		_, err := parse("bug.patch", bad)
		assert.ErrorContains(t, err, "bug.patch: want a line", bad)
	}
}

func TestRefreshMakesPatchesExact(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, folder, "room", "bug.patch")
	for _, test := range []struct{ name, file, want, refused string }{
		{name: "moved", file: "1\na\nb\nc\n", want: "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n"},
		{name: "new neighbours", file: "1\nx\nb\ny\n", want: "@@ -2,3 +2,3 @@\n x\n-b\n+B\n y\n"},
		{name: "similar place", file: "1\na\nb\nc\n2\na\nb\nd\n", want: "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n"},
		{name: "two places", file: "x\nb\nx\nb\nx\n", refused: "ambiguous"},
		{name: "gone", file: "a\nc\n", refused: "does not apply"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, writeFiles(root, map[string]string{"room/file": test.file, folder + "/room/bug.patch": abc}))
			all, err := load(root)
			require.NoError(t, err)
			err = refresh(root, all)
			now, _ := os.ReadFile(file)
			if test.refused != "" {
				assert.ErrorContains(t, err, test.refused)
				assert.Equal(t, abc, string(now))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "b is B\nfound by: sim --fair\n\n--- a/room/file\n+++ b/room/file\n"+test.want, string(now))
		})
	}
}

func TestAPatchHasTheContextThatItNeeds(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, writeFiles(root, map[string]string{"file": "1\na\nb\nc\n2\na\nb\nc\n3\n"}))
	m, err := mutant{}.changing(root, t.TempDir(), map[string]string{"file": "1\na\nB\nc\n2\na\nb\nc\n3\n"})
	require.NoError(t, err)
	assert.Equal(t, "--- a/file\n+++ b/file\n@@ -1,5 +1,5 @@\n 1\n a\n-b\n+B\n c\n 2\n", m.patch)
	_, err = m.changing(root, t.TempDir(), map[string]string{"file": "1\na\nb\nc\n2\na\nb\nc\n3\n"})
	assert.ErrorContains(t, err, "changes nothing")
}

func TestMutantFailsAlsoByAPanic(t *testing.T) {
	m := mutant{test: "TestB/of_two"}
	for out, want := range map[string]bool{
		"--- FAIL: TestB/of_two (0.00s)\nFAIL":                                              true,
		"panic: boom [recovered]\n\ngoroutine 7 [running]:\nexample/b_test.TestB.func1()\n": true,
		"panic: boom [recovered]\n\ngoroutine 7 [running]:\nexample/b_test.TestC.func1()\n": false,
		"b.go:3: undefined: example.TestB.x":                                                false,
		"ok":                                                                                false,
	} {
		assert.Equal(t, want, m.failed([]byte(out)), out)
	}
}
