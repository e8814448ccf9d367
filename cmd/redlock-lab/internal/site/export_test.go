package site

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
)

func runExport(t *testing.T, module compiler, args ...string) (code int, out, errs string) {
	t.Helper()
	return clitest.Run(t, t.Context(), clitest.Program(newExport(module)), append([]string{"export"}, args...)...)
}

// filesBelow returns the paths of all files in a folder, with slashes.
func filesBelow(t *testing.T, folder string) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// Any web server can serve an export below any path: it has all files of the page, and the module.
func TestExportIsServedBelowAnyPath(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "any", "path")
	code, out, errs := runExport(t, compiled, folder)
	require.Equal(t, cli.ExitOK, code, errs)
	assert.Regexp(t, `\A\d+ files in .*: \d+\.\d MB, compressed by gzip \d+\.\d MB\n\z`, out)

	server := httptest.NewServer(http.FileServer(http.Dir(root)))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	page, err := pageFiles()
	require.NoError(t, err)
	page[moduleName], err = compress(simulation)
	require.NoError(t, err)
	for name, content := range page {
		if name == "index.html" {
			name = "" // servers redirect the full name
		}
		response, err := http.Get(server.URL + "/any/path/" + name)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, content, body, name)
	}
	assert.Len(t, filesBelow(t, folder), len(page)+1)
}

// The page works below any path, and without a network: it refers to its own files alone, by relative
// addresses. Names of XML vocabularies, licences and comments in libraries are not loaded.
func TestPageRefersToItsOwnFilesAlone(t *testing.T) {
	page, err := pageFiles()
	require.NoError(t, err)
	elsewhere := regexp.MustCompile(`https?://[^\s"'` + "`" + `<>)\\]+`)
	absolute := regexp.MustCompile(`(?:\b(?:src|href)=|\b(?:from|import|fetch|url|Worker)\s*\(?\s*)["']?/[^/*\s>]`)
	prose := regexp.MustCompile(`(?i)licen[cs]e|\.md$`)
	comment := regexp.MustCompile(`/\*[\s\S]*?\*/|(?m:(?:^|\s)//.*$)`)
	for name, content := range page {
		if prose.MatchString(name) {
			continue
		}
		if strings.HasPrefix(name, "vendor/") {
			content = comment.ReplaceAll(content, nil)
		}
		for _, found := range elsewhere.FindAllString(string(content), -1) {
			assert.Regexp(t, `^http://www\.w3\.org/`, found, name)
		}
		assert.NotRegexp(t, absolute, string(content), name)
	}
}

// A second export replaces the first, and leaves alone what is of neither.
func TestExportReplacesAnEarlierExport(t *testing.T) {
	folder := t.TempDir()
	code, _, errs := runExport(t, compiled, folder)
	require.Equal(t, cli.ExitOK, code, errs)
	before := filesBelow(t, folder)

	root, err := os.OpenRoot(folder)
	require.NoError(t, err)
	defer root.Close()
	files, err := pageFiles()
	require.NoError(t, err)
	files["old/one.js"] = []byte("old")
	files[moduleName] = []byte("old")
	require.NoError(t, export(root, files))
	require.FileExists(t, filepath.Join(folder, "old", "one.js"))
	require.NoError(t, root.WriteFile("CNAME", []byte("lab.example"), 0o644))

	code, _, errs = runExport(t, compiled, folder)
	require.Equal(t, cli.ExitOK, code, errs)
	assert.ElementsMatch(t, append(before, "CNAME"), filesBelow(t, folder))
	content, err := root.ReadFile(moduleName)
	require.NoError(t, err)
	assert.NotEqual(t, "old", string(content))
}

// A list that was changed cannot make an export remove a file outside of the folder.
func TestExportStaysInItsFolder(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(outside, nil, 0o644))
	folder := filepath.Join(filepath.Dir(outside), "lab")
	require.NoError(t, os.Mkdir(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, listName), []byte(listHead+"\n../precious\n"), 0o644))
	code, _, errs := runExport(t, compiled, folder)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, errs, "cannot write to "+folder)
	assert.FileExists(t, outside)
}

func TestExportRefusesAFolderThatIsNotItsOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o644))
	never := func(context.Context) ([]byte, error) { panic("compiled for nothing") }
	for folder, want := range map[string]string{
		file:               "cannot make the folder " + file + ": not a directory",
		filepath.Dir(file): "cannot export to " + filepath.Dir(file) + ": it is not empty, and holds no earlier export",
	} {
		code, out, errs := runExport(t, never, folder)
		assert.Equal(t, cli.ExitFailed, code)
		assert.Empty(t, out)
		clitest.AssertOneLine(t, errs)
		assert.Contains(t, errs, want)
	}
	assert.Equal(t, []string{"file"}, filesBelow(t, filepath.Dir(file)))
	for _, args := range [][]string{{}, {""}, {"a", "b"}} {
		code, out, errs := runExport(t, never, args...)
		clitest.AssertUsage(t, "want one DIR", code, out, errs)
	}
}

func TestExportWithoutAModuleWritesNothing(t *testing.T) {
	folder := t.TempDir()
	code, out, errs := runExport(t, func(context.Context) ([]byte, error) { return nil, errors.New("no source") }, folder)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "redlock: no source\n")
	assert.Empty(t, filesBelow(t, folder))
}
