package realtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// Two of five masters are down, and the key stays taken after its process has ended. A waiter gets
// it when that is over, not when the ttl is.
func TestRealReleaseAfter(t *testing.T) {
	for name, cfg := range map[string]redlock.Config{"plain": {}, "fencing": {Fencing: true}, "fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 5)
			r := f.redlock(cfg)
			l := f.acquire(r, key, time.Hour)
			f.onAll(key, l)
			f.kill(1)
			require.NoError(t, f.servers[4].Pause(), "it hangs")
			waiter := f.redlock(cfg)
			var got time.Time
			next := make(chan *redlock.Lock, 1)
			go func() {
				l, err := waiter.Acquire(f.ctx, key, time.Hour)
				got = time.Now()
				assert.NoError(t, err)
				next <- l
			}()
			f.eventually("it waits", func() bool {
				for _, i := range []int{0, 2, 3} {
					if f.admin[i].ZCard(f.ctx, "redlock:queue:{"+key+"}").Val() == 0 {
						return false
					}
				}
				return true
			})
			began := time.Now()
			require.NoError(t, l.ReleaseAfter(f.ctx, time.Second))
			require.NoError(t, r.Close())
			after := <-next
			require.NotNil(t, after)
			assert.GreaterOrEqual(t, got.Sub(began), time.Second, "nobody before d")
			if cfg.Fencing {
				assert.Greater(t, after.FencingToken(), l.FencingToken())
			}
			require.NoError(t, f.release(after))
		})
	}
}
