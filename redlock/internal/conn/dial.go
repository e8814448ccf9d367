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
	mu    sync.Mutex
	next  int
	tells map[int]func(error)
}

func (w *dialWatch) add(f func(error)) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tells == nil {
		w.tells = map[int]func(error){}
	}
	id := w.next
	w.next++
	w.tells[id] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.tells, id)
	}
}

// DialHook passes the error of each dial, or nil, to all watchers.
func (w *dialWatch) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		went := err
		if err == nil {
			went = endpoint.Failed(conn)
		}
		w.mu.Lock()
		tells := make([]func(error), 0, len(w.tells))
		for _, f := range w.tells {
			tells = append(tells, f)
		}
		w.mu.Unlock()
		for _, f := range tells {
			f(went)
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
