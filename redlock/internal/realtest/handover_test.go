package realtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// One Redlock hands a lock over to another one, as processes do, with two of five masters down, hung
// or restarted without their memory. It is never free in between.
func TestRealDetachAndResume(t *testing.T) {
	for name, fault := range map[string]func(f *fleet, i int){
		"well":      func(*fleet, int) {},
		"down":      func(f *fleet, i int) { f.servers[i].Kill() },
		"hung":      func(f *fleet, i int) { require.NoError(f, f.servers[i].Pause()) },
		"restarted": func(f *fleet, i int) { f.servers[i].Kill(); require.NoError(f, f.servers[i].Restart()) },
	} {
		for _, cfg := range []redlock.Config{{}, {Fencing: true, KeyPrefix: "app:"}} {
			t.Run(name, func(t *testing.T) {
				f := startFleet(t, 5)
				nodeKey := cfg.KeyPrefix + key
				here, err := redlock.New(f.clients(), f.config(cfg))
				require.NoError(t, err)
				l, err := here.Acquire(f.ctx, key, time.Minute)
				require.NoError(t, err)
				f.onAll(nodeKey, l)
				l.KeepAlive()
				handle, err := l.Detach()
				require.NoError(t, err)
				require.NoError(t, here.Close())
				assert.Equal(t, redlock.ErrDetached, context.Cause(l.Context()))
				f.onAll(nodeKey, l) // Close has released nothing

				for _, i := range []int{1, 3} {
					fault(f, i)
				}
				there := f.redlock(cfg)
				_, err = there.TryAcquire(f.ctx, key, time.Minute)
				require.ErrorIs(t, err, redlock.ErrHeld)
				next, err := there.Resume(f.ctx, handle, 2*time.Minute)
				require.NoError(t, err)
				assert.Equal(t, l.Value(), next.Value())
				assert.Equal(t, l.FencingToken(), next.FencingToken())
				for _, i := range []int{0, 2, 4} {
					f.eventually("it lives longer", func() bool { return f.admin[i].PTTL(f.ctx, nodeKey).Val() > time.Minute })
				}
				if name == "restarted" {
					f.onAll(nodeKey, l) // they have got it again
				}
				require.NoError(t, f.release(next))
				f.gone(nodeKey, 0, 2, 4)
				_, err = there.Resume(f.ctx, handle, time.Minute)
				assert.ErrorIs(t, err, redlock.ErrNotHeld)
				if name == "hung" {
					for _, i := range []int{1, 3} {
						require.NoError(t, f.servers[i].Resume())
					}
					f.gone(nodeKey)
				}
			})
		}
	}
}
