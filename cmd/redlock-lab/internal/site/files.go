// Package site has the subcommands that bring the lab to a browser: serve and export. The page in the
// folder page is static. It runs the simulation of package exact in the browser.
package site

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Some names of libraries begin with _, which is why there is all:.
//
//go:embed all:page
var embedded embed.FS

// moduleName is the name under which the page loads the simulation: a WebAssembly module, compressed by
// gzip. The page decompresses it, so no web server needs to know about it.
const moduleName = "lab.wasm.gz"

// pageFiles returns the files of the page, by their paths below it. The module is not among them.
func pageFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(embedded, "page", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := embedded.ReadFile(name)
		files[strings.TrimPrefix(name, "page/")] = content
		return err
	})
	return files, err
}

// compress returns what gzip makes of content. It is the same each time: there is no time in it.
func compress(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(content); err == nil {
		err = w.Close()
	}
	return out.Bytes(), err
}

// contentTypes are the types of all kinds of files that the page has. The table of the system may lack
// some, or have others.
var contentTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".gz":   "application/gzip",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".json": "application/json",
	".md":   "text/plain; charset=utf-8",
	".png":  "image/png",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
	"":      "text/plain; charset=utf-8", // such as LICENSE
}

// contentType returns the type of the file with this name.
func contentType(name string) (string, error) {
	if t, known := contentTypes[path.Ext(name)]; known {
		return t, nil
	}
	return "", fmt.Errorf("no content type for %s", name)
}
