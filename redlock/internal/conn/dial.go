package conn

import (
	"context"
	"net"
	"runtime"
	"sync"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/endpoint"
)

// watchDials calls f after each dial of the client with its error, or nil, until stop is
// called. A client gets one such hook for its lifetime, however often it is watched: go-redis
// can add hooks but not remove them.
func watchDials(client *redis.Client, f func(error)) (stop func()) {
	id := weak.Make(client)
	known, loaded := dialWatches.LoadOrStore(id, &dialWatch{})
	w := known.(*dialWatch)
	if !loaded {
		client.AddHook(w)
		runtime.AddCleanup(client, func(id weak.Pointer[redis.Client]) { dialWatches.Delete(id) }, id)
	}
	return w.add(f)
}

// dialWatches holds the hooks by client, without keeping a client alive.
var dialWatches sync.Map // weak.Pointer[redis.Client] → *dialWatch

// dialWatch is a go-redis hook that only observes dials.
type dialWatch struct {
	mu       sync.Mutex
	nextID   int
	watchers map[int]func(error)
}

func (w *dialWatch) add(f func(error)) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watchers == nil {
		w.watchers = map[int]func(error){}
	}
	id := w.nextID
	w.nextID++
	w.watchers[id] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watchers, id)
	}
}

// DialHook passes the error of each dial, or nil, to all watchers. A dial may fail although it
// returns a connection; see endpoint.Failed.
func (w *dialWatch) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		failure := err
		if err == nil {
			failure = endpoint.Failed(conn)
		}
		w.mu.Lock()
		watchers := make([]func(error), 0, len(w.watchers))
		for _, f := range w.watchers {
			watchers = append(watchers, f)
		}
		w.mu.Unlock()
		for _, f := range watchers {
			f(failure)
		}
		return conn, err
	}
}

// ProcessHook leaves commands alone.
func (w *dialWatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook leaves pipelines alone.
func (w *dialWatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
