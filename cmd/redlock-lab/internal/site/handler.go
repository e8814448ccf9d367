package site

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// policy lets the page load its own files alone, and compile WebAssembly.
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'"

// loading is a module that is being compiled.
type loading struct {
	done    chan struct{} // closed when the rest is set
	content []byte        // compressed
	err     error
}

// load compiles a module in a goroutine of its own, until ctx ends.
func load(ctx context.Context, module func(context.Context) ([]byte, error)) *loading {
	l := &loading{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		if l.content, l.err = module(ctx); l.err == nil {
			l.content, l.err = compress(l.content)
		}
	}()
	return l
}

// handler serves the page and its module.
type handler struct {
	page   map[string][]byte // by path, without the slash at its beginning
	module *loading
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-cache")
	if !loopback(r.Host) {
		http.Error(w, "this server answers under the names of this machine alone, such as localhost", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "the lab can only be read", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	content, found := h.page[name]
	if name == moduleName {
		select {
		case <-h.module.done:
		case <-r.Context().Done():
			return // the browser has left
		}
		if h.module.err != nil {
			http.Error(w, h.module.err.Error(), http.StatusInternalServerError)
			return
		}
		content, found = h.module.content, true
	}
	kind, err := contentType(name)
	if !found || err != nil {
		http.Error(w, "the lab has no such file", http.StatusNotFound)
		return
	}
	header.Set("Content-Type", kind)
	header.Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(content)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// loopback reports whether a Host header names this machine from within. A page of another site whose
// name leads to 127.0.0.1 has that name there.
func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport // without a port
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
