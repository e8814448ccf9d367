package waitqueue_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// denyQueues has masters refuse the queue script, as to a user without the right to its keys.
func denyQueues(b *virtual.Bed) {
	for _, m := range b.Masters.All() {
		m.Miniredis().Server().SetPreHook(func(c *server.Peer, command string, args ...string) bool {
			denied := strings.HasPrefix(command, "EVAL") && len(args) > 1 && args[1] == "3"
			if denied {
				c.WriteError("NOPERM No permissions to access a key")
			}
			return denied
		})
	}
}

// The node that denies the queue is logged, with the node's words, also if an attempt without an
// entry found out first.
func TestAcquireLogsANodeThatDeniesTheQueue(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		denyQueues(b)
		var out bytes.Buffer
		r := b.NewRedlock(redlock.Config{Fair: true, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		b.Steal(key, 0, 0, 1, 2)
		c, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, err := r.Acquire(c, key, time.Minute)
		require.ErrorIs(b, err, redlock.ErrHeld)
		b.Settle()
		assert.Equal(b, 3, strings.Count(out.String(), `waiting by looking" event=queue_denied node=`), out.String())
		assert.Equal(b, 3, strings.Count(out.String(), `:6379 error="NOPERM`), out.String())
	})
}

// A wait that loses the majority after it has queued reports that, once for each time.
func TestAcquireLogsThatTheQuorumIsLostDuringAWait(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		var out bytes.Buffer
		r := b.NewRedlock(redlock.Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
		b.Steal(key, 10*time.Second, 0, 1, 2)
		c, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := r.Acquire(c, key, time.Minute)
			assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		}()
		time.Sleep(5 * time.Second)
		assert.NotContains(b, out.String(), "no quorum", "another client has the key")
		b.Masters.Kill(0, 1)
		<-done
		b.Settle()
		assert.Equal(b, 1, strings.Count(out.String(), "no quorum, waiting"), out.String())
	})
}
