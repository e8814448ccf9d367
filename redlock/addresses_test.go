package redlock

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// A master of a Cluster gets a new address again and again, as a Kubernetes pod does. The memory
// that we keep of its addresses does not grow with their number.
func TestAcquireForgetsTheAddressesThatMastersLeft(t *testing.T) {
	const guard = 10 * time.Second
	for name, cfg := range map[string]Config{
		"without the guard": {NodeTimeout: 200 * time.Millisecond},
		"with the guard":    {NodeTimeout: 200 * time.Millisecond, RestartGuard: guard},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				masters := inmemory.StartVirtual(t, 3)
				client, move := inmemory.MovingShard(masters.Master(2), "pod:0")
				defer func() { assert.NoError(t, client.Close()) }()
				r, err := New([]redis.UniversalClient{masters.Master(0).Client(), masters.Master(1).Client(), client}, cfg)
				require.NoError(t, err)
				defer func() { assert.NoError(t, r.Close()) }()
				ctx := context.Background()
				time.Sleep(2 * guard) // the masters have been up for long

				const changes, every = 200, 500 * time.Millisecond
				for i := range changes {
					move(masters.Master(2), fmt.Sprint("pod:", i))
					time.Sleep(every)
					l, err := r.TryAcquire(ctx, "key", time.Second)
					require.NoError(t, err)
					r.subscriber.Subscribe("another key") // as a wait does
					synctest.Wait()
					require.NoError(t, l.Release(ctx))
					synctest.Wait()
				}
				connections, clients := r.nodes[2].Held()
				assert.LessOrEqual(t, connections, 1, "connections")
				assert.LessOrEqual(t, clients, 2, "clients for subscriptions")
				status := r.Nodes()[2].Servers
				assert.LessOrEqual(t, len(status), int((cfg.RestartGuard+2*time.Second)/every)+2, "servers")
				assert.Equal(t, fmt.Sprint("pod:", changes-1), status[len(status)-1].Addr)
			})
		})
	}
}
