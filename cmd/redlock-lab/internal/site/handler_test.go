package site

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newHandler(t *testing.T, module compiler) *handler {
	t.Helper()
	page, err := pageFiles()
	require.NoError(t, err)
	h := &handler{page, load(t.Context(), module)}
	t.Cleanup(func() { <-h.module.done })
	return h
}

// ask sends a request as a browser of this machine does, unless change says otherwise.
func ask(h http.Handler, method, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:8317"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandlerServesEachFileOfThePage(t *testing.T) {
	h := newHandler(t, compiled)
	for name, content := range h.page {
		w := ask(h, "GET", "/"+name, nil)
		assert.Equal(t, http.StatusOK, w.Code, name)
		assert.Equal(t, content, w.Body.Bytes(), name)
		assert.NotEmpty(t, w.Header().Get("ETag"), name)
		assert.NotContains(t, w.Header().Get("Content-Type"), "octet-stream", name)
	}
	assert.Equal(t, h.page["index.html"], ask(h, "GET", "/", nil).Body.Bytes())
	for _, name := range []string{"/nothing.js", "/index", "/../handler.go", "/page/index.html"} {
		assert.Equal(t, http.StatusNotFound, ask(h, "GET", name, nil).Code, name)
	}
}

func TestHandlerNamesTheTypesThatABrowserNeeds(t *testing.T) {
	h := newHandler(t, compiled)
	h.page = map[string][]byte{"index.html": nil, "main.js": nil, "style.css": nil, "vendor/LICENSE": nil}
	for path, want := range map[string]string{
		"/":               "text/html; charset=utf-8",
		"/main.js":        "text/javascript; charset=utf-8",
		"/style.css":      "text/css; charset=utf-8",
		"/vendor/LICENSE": "text/plain; charset=utf-8",
		"/lab.wasm.gz":    "application/gzip",
	} {
		w := ask(h, "GET", path, nil)
		assert.Equal(t, want, w.Header().Get("Content-Type"), path)
		assert.Empty(t, w.Header().Get("Content-Encoding"), path)
	}
}

func TestHandlerSetsTheHeadersOfEveryAnswer(t *testing.T) {
	h := newHandler(t, compiled)
	for _, path := range []string{"/", "/lab.wasm.gz", "/nothing"} {
		header := ask(h, "GET", path, nil).Header()
		assert.Equal(t, "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'", header.Get("Content-Security-Policy"), path)
		assert.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), path)
		assert.Equal(t, "no-cache", header.Get("Cache-Control"), path)
	}
}

// A browser that has a file asks whether it has changed, and does not load it again.
func TestHandlerSendsNothingThatTheBrowserHas(t *testing.T) {
	h := newHandler(t, compiled)
	for _, path := range []string{"/", "/lab.wasm.gz"} {
		tag := ask(h, "GET", path, nil).Header().Get("ETag")
		w := ask(h, "GET", path, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
		assert.Equal(t, http.StatusNotModified, w.Code, path)
		assert.Empty(t, w.Body.Bytes(), path)
		w = ask(h, "GET", path, func(r *http.Request) { r.Header.Set("If-None-Match", `"other"`) })
		assert.Equal(t, http.StatusOK, w.Code, path)
	}
}

func TestHandlerIsOnlyRead(t *testing.T) {
	h := newHandler(t, compiled)
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		w := ask(h, method, "/", nil)
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		assert.Equal(t, "GET, HEAD", w.Header().Get("Allow"), method)
	}
	w := ask(h, "HEAD", "/", nil)
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Empty(t, w.Body.Bytes())
}

// Another site whose name leads to 127.0.0.1 must not read this server.
func TestHandlerAnswersUnderTheNamesOfThisMachineAlone(t *testing.T) {
	h := newHandler(t, compiled)
	for host, want := range map[string]int{
		"127.0.0.1:8317":         http.StatusOK,
		"127.0.0.1":              http.StatusOK,
		"localhost:9000":         http.StatusOK, // a forwarded port
		"LocalHost":              http.StatusOK,
		"[::1]:8317":             http.StatusOK,
		"[::1]":                  http.StatusOK,
		"evil.example:8317":      http.StatusForbidden,
		"127.0.0.1.evil.example": http.StatusForbidden,
		"localhost.evil.example": http.StatusForbidden,
		"192.168.0.1:8317":       http.StatusForbidden,
		"0.0.0.0:8317":           http.StatusForbidden,
		"":                       http.StatusForbidden,
	} {
		w := ask(h, "GET", "/", func(r *http.Request) { r.Host = host })
		assert.Equal(t, want, w.Code, host)
	}
}

// The page is there while the module compiles; the request for the module waits.
func TestHandlerServesThePageWhileTheModuleCompiles(t *testing.T) {
	finish := make(chan struct{})
	h := newHandler(t, func(context.Context) ([]byte, error) { <-finish; return simulation, nil })
	assert.Equal(t, http.StatusOK, ask(h, "GET", "/", nil).Code)

	gone, leave := context.WithCancel(t.Context())
	leave()
	ask(h, "GET", "/lab.wasm.gz", func(r *http.Request) { *r = *r.WithContext(gone) }) // it returns

	answer := make(chan *httptest.ResponseRecorder)
	go func() { answer <- ask(h, "GET", "/lab.wasm.gz", nil) }()
	select {
	case w := <-answer:
		t.Errorf("status %d before the module was there", w.Code)
		close(finish)
	case finish <- struct{}{}: // the compiler waits for this
		w := <-answer
		assert.Equal(t, http.StatusOK, w.Code)
		unpacked, err := gzip.NewReader(w.Body)
		require.NoError(t, err)
		content, err := io.ReadAll(unpacked)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(simulation, content))
		assert.Zero(t, unpacked.ModTime)
	}
}

func TestHandlerSaysWhyThereIsNoModule(t *testing.T) {
	h := newHandler(t, func(context.Context) ([]byte, error) { return nil, errors.New("no <Go> command") })
	w := ask(h, "GET", "/lab.wasm.gz", nil)
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
	assert.Equal(t, "no <Go> command\n", w.Body.String())
	assert.Equal(t, http.StatusOK, ask(h, "GET", "/", nil).Code)
}
