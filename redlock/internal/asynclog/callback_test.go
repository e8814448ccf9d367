package asynclog_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// Callbacks of the program cannot hurt a lock.

// handler is a slog.Handler that does what the test says.
type handler struct {
	slog.Handler
	handle func()
}

func (handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(context.Context, slog.Record) error {
	h.handle()
	return nil
}

// outage makes many rounds fail at once, of one lock that is kept alive and of
// others, and reports how late the contexts of the locks ended.
func outage(b *virtual.Bed, cfg redlock.Config) (late []time.Duration, closing time.Duration) {
	r, err := redlock.New(b.Masters.Clients(), cfg)
	require.NoError(b, err)
	ended := make(chan time.Duration, 5)
	for i := range 5 {
		l, err := r.TryAcquire(ctx, string(rune('a'+i)), 3*time.Second)
		require.NoError(b, err)
		l.KeepAlive()
		go func() {
			<-l.Context().Done()
			ended <- time.Since(l.Until())
		}()
	}
	b.Settle()
	b.Masters.Kill(0, 1, 2)
	for range 5 {
		late = append(late, <-ended)
	}
	return late, virtual.Took(func() { require.NoError(b, r.Close()) })
}

func TestSlowCallbacksDelayNoLoss(t *testing.T) {
	for name, cfg := range map[string]redlock.Config{
		"Trace":  {Trace: func(redlock.Trace) { time.Sleep(300 * time.Millisecond) }},
		"Logger": {Logger: slog.New(handler{handle: func() { time.Sleep(300 * time.Millisecond) }})},
	} {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			late, closing := outage(b, cfg)
			for _, d := range late {
				assert.Zero(t, d, name)
			}
			assert.LessOrEqual(t, closing, virtual.NodeTimeout+2*time.Second, name)
			time.Sleep(time.Hour) // until Close has given the callback up
		})
	}
}

func TestCallbacksThatPanicOrCloseHurtNobody(t *testing.T) {
	var r *redlock.Redlock
	closes := func() { _ = r.Close() }
	panics := func() { panic("boom") }
	for name, cfg := range map[string]redlock.Config{
		"panicking Trace":  {Trace: func(redlock.Trace) { panics() }},
		"panicking Logger": {Logger: slog.New(handler{handle: panics})},
		"closing Trace":    {Trace: func(redlock.Trace) { closes() }},
		"closing Logger":   {Logger: slog.New(handler{handle: closes})},
	} {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			var err error
			r, err = redlock.New(b.Masters.Clients(), cfg)
			require.NoError(t, err)
			b.Masters.Kill(0, 1)
			c, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			_, err = r.Acquire(c, key, ttl)
			assert.Error(t, err, name)
			b.Settle()
			assert.LessOrEqual(t, virtual.Took(func() { _ = r.Close() }), 10*time.Second, name)
			time.Sleep(time.Minute)
		})
	}
}

// A failed require in a callback is a runtime.Goexit. It costs that one call.
func TestCallbacksGoOnAfterAGoexit(t *testing.T) {
	calls := make(chan struct{}, 100)
	exits := func() {
		calls <- struct{}{}
		runtime.Goexit()
	}
	for name, cfg := range map[string]redlock.Config{
		"Trace":  {Trace: func(redlock.Trace) { exits() }},
		"Logger": {Logger: slog.New(handler{handle: exits})},
	} {
		virtual.Run(t, 3, cfg, func(b *virtual.Bed) {
			for range 3 {
				l := b.Acquire(key, time.Second)
				time.Sleep(2 * time.Second) // its loss is logged
				assert.ErrorIs(t, l.Release(ctx), redlock.ErrExpired)
				b.Settle()
			}
			assert.GreaterOrEqual(t, len(calls), 3, name)
			for len(calls) > 0 {
				<-calls
			}
		})
	}
}
