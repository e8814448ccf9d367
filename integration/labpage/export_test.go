package labpage

import (
	"compress/gzip"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The exported site works from any web server and below any path, loads nothing from elsewhere, and is
// small.
func TestExportedSite(t *testing.T) {
	inBrowser(t)
	root := t.TempDir()
	folder := filepath.Join(root, "any", "path")
	t.Log(strings.ReplaceAll(run(t, "export", folder), root, ""))
	size := 0
	require.NoError(t, filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		size += compressed(t, name)
		return nil
	}))
	t.Logf("%d bytes compressed", size)
	assert.Less(t, size, 8_000_000)

	link := busy + "&until=1500"
	want := fingerprint(t, "--scenario", link)
	files := http.FileServer(http.Dir(root))
	for name, handler := range map[string]http.Handler{
		"a plain server": files,
		// Some servers take the end of the name for an encoding, which browsers undo.
		"a server that declares the encoding": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".wasm.gz") {
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "application/wasm")
			}
			files.ServeHTTP(w, r)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			p := open(t, server.URL+"/any/path/", link, wide)
			p.ready()
			p.wait(`document.body.dataset.state === "paused" && window.lab.time() >= 1500`)
			assert.Equal(t, want, eval[string](p, `window.lab.fingerprint()`))
			p.never("loaded from elsewhere", `performance.getEntriesByType("resource").map((e) => e.name).filter((name) => !name.startsWith(location.origin + "/any/path/"))`)
		})
	}
}

// compressed returns the size of a file as gzip makes it.
func compressed(t *testing.T, name string) int {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	if strings.HasSuffix(name, ".gz") {
		return len(content)
	}
	var out counter
	w := gzip.NewWriter(&out)
	_, err = w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return int(out)
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }
