package conn_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// A vote needs positive evidence: after a handshake that failed, go-redis leaves
// every command of a pipeline without an error of its own.
func TestAcquireWithAWrongPasswordIsNoQuorum(t *testing.T) {
	masters := redlocktest.Start(t, 3)
	urls := masters.URLs()
	for _, m := range masters.All()[:2] {
		m.SetPassword("hunter2")
	}
	for i := range 2 {
		urls[i] = strings.Replace(urls[i], "redis://", "redis://:wrong-hunter3@", 1)
	}
	r, err := redlock.Open(urls, redlock.Config{NodeTimeout: 10 * time.Second}) // for slow machines
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()

	check := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(t, err, redlock.ErrHeld)
		assert.Contains(t, err.Error(), "WRONGPASS")
		assert.NotContains(t, err.Error(), "hunter")
	}
	_, err = r.TryAcquire(ctx, key, ttl)
	check(err)
	// Several calls at once share a batch, which is sent as a pipeline.
	errs := make(chan error, 64)
	for i := range 64 {
		go func() {
			_, err := r.TryAcquire(ctx, strings.Repeat("k", i+1), ttl)
			errs <- err
		}()
	}
	for range 64 {
		check(<-errs)
	}
}

// An answer that is neither yes nor no is not a vote, whatever it looks like.
func TestAcquireCountsNoVoteForAnUnknownReply(t *testing.T) {
	for name, answer := range map[string]func(*server.Peer){
		"another word": func(p *server.Peer) { p.WriteInline("QUEUED") },
		"a number":     func(p *server.Peer) { p.WriteInt(7) },
		"one":          func(p *server.Peer) { p.WriteInt(1) },
		"a string":     func(p *server.Peer) { p.WriteBulk("1") },
		"a list":       func(p *server.Peer) { p.WriteLen(1); p.WriteBulk("OK") },
		"OK":           func(p *server.Peer) { p.WriteOK() },
	} {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			b.Warm()
			held := b.Acquire("held", ttl)
			b.Settle()
			for _, m := range b.Masters.All()[:2] {
				m.Miniredis().Server().SetPreHook(func(p *server.Peer, cmd string, _ ...string) bool {
					if cmd == "SET" && name != "OK" || strings.HasPrefix(cmd, "EVAL") && name != "one" {
						answer(p)
						return true
					}
					return false
				})
			}
			if name != "OK" {
				_, err := b.Redlock.TryAcquire(ctx, key, ttl)
				require.ErrorIs(t, err, redlock.ErrNoQuorum, name)
			}
			if name != "one" {
				require.ErrorIs(t, held.Extend(ctx, ttl), redlock.ErrNoQuorum, name)
				require.ErrorIs(t, held.Release(ctx), redlock.ErrNoQuorum, name)
			}
			for _, m := range b.Masters.All() {
				m.Miniredis().Server().SetPreHook(nil)
			}
			time.Sleep(5 * time.Second)
			assert.Empty(t, b.Has(key))
		})
	}
}

// A Cluster node behind a plain client answers where the key is. The error reports that answer, and
// what to do.
func TestAcquireNamesAClusterBehindAPlainClient(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Masters.Master(0).Miniredis().SetError("MOVED 1 10.0.0.9:6379")
		_, err := b.Redlock.TryAcquire(context.Background(), "k", time.Second)
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.ErrorContains(b, err, "ClusterClient")
		b.Masters.Master(0).Miniredis().SetError("")
	})
}
