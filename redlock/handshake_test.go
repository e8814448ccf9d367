package redlock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// Servers that have another password by the time that their connections are made
// anew do not let us in. After a handshake that failed go-redis leaves every command
// of a pipeline as it was: none may take the reply that it had before for an answer.
func TestARefusedHandshakeIsNoAnswer(t *testing.T) {
	for _, n := range []int{1, 8} { // a command, a pipeline
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			for _, m := range b.Masters.All() {
				m.SetPassword("first")
			}
			lock := b.NewRedlock(redlock.Config{})
			burst := func(name string) (held []*redlock.Lock) {
				var all sync.WaitGroup
				var mu sync.Mutex
				for i := range n {
					all.Go(func() {
						l, err := lock.TryAcquire(ctx, fmt.Sprint(name, i), time.Minute)
						if err != nil {
							assert.ErrorIs(t, err, redlock.ErrNoQuorum)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						held = append(held, l)
					})
				}
				all.Wait()
				return held
			}
			for i := range 3 {
				require.Len(t, burst(fmt.Sprint("before ", i, " ")), n)
				b.Settle()
			}
			for _, m := range b.Masters.All() {
				m.SetPassword("second")
			}
			for i := range 3 {
				b.Masters.Kill(0, 1, 2)
				b.Settle()
				require.NoError(t, b.Masters.Restart(0, 1, 2))
				for j := range 4 {
					assert.Empty(t, burst(fmt.Sprint("after ", i, " ", j, " ")))
					time.Sleep(700 * time.Millisecond)
				}
			}
		})
	}
}
