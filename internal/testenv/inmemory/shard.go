package inmemory

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// MovingShard returns a client of a Cluster of one shard, whose master is m at addr, and a
// function that gives the shard to another master or address and has the client load that. The
// clients that it makes for each address are changed by configure.
func MovingShard(m *Master, addr string, configure ...func(*redis.Options)) (client *redis.ClusterClient, move func(to *Master, addr string)) {
	var mu sync.Mutex
	masters := map[string]*Master{addr: m} // all that have been there
	client = redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			mu.Lock()
			defer mu.Unlock()
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
		},
		NewClient: func(opt *redis.Options) *redis.Client {
			mu.Lock()
			defer mu.Unlock()
			at := func(o *redis.Options) { o.Addr = opt.Addr }
			return masters[opt.Addr].Client(append([]func(*redis.Options){at}, configure...)...)
		},
	})
	return client, func(to *Master, next string) {
		mu.Lock()
		addr, masters[next] = next, to
		mu.Unlock()
		client.ReloadState(context.Background())
	}
}
