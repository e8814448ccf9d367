package redlockotel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlockotel"
)

// BenchmarkAcquireRelease makes the calls of one Acquire and one Release on three nodes. A program
// makes the calls of the votes on a goroutine of their own.
func BenchmarkAcquireRelease(b *testing.B) {
	meters := redlockotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())))
	untraced := redlockotel.WithTracerProvider(noop.NewTracerProvider())
	unsampled := redlockotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())))
	observer := func(opts ...redlockotel.Option) redlock.Observer {
		o, err := redlockotel.New(opts...)
		require.NoError(b, err)
		return o
	}
	for _, bench := range []struct {
		name     string
		observer redlock.Observer
	}{
		{"none", redlock.NoObserver{}},
		{"metrics", observer(meters, untraced)},
		{"metrics with keys", observer(meters, untraced, redlockotel.WithKey(keyClass))},
		{"metrics, unsampled spans", observer(meters, unsampled)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			o, ctx, start := bench.observer, b.Context(), time.Now()
			votes := make([]redlock.NodeVote, 3)
			for i, addr := range []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"} {
				votes[i] = redlock.NodeVote{Node: i, Addr: addr, Op: "acquire", Key: key, Vote: quorum.Granted, Latency: time.Millisecond, Count: 1}
			}
			acquire := redlock.Operation{Op: redlock.OpAcquire, Key: key, TTL: ttl, Start: start}
			release := redlock.Operation{Op: redlock.OpRelease, Key: key, Start: start}
			b.ReportAllocs()
			for b.Loop() {
				began := o.AcquireBegan(ctx, acquire)
				o.OperationEnded(began, redlock.OperationResult{Operation: acquire, Elapsed: time.Millisecond, Rounds: 1, Count: 1})
				o.OperationEnded(ctx, redlock.OperationResult{Operation: release, Elapsed: time.Millisecond, Rounds: 1, Count: 1})
				o.LockEnded(ctx, redlock.LockEnd{Key: key, Held: time.Second, Cause: redlock.ErrReleased})
				for range 2 {
					for _, v := range votes {
						o.NodeVoted(ctx, v)
					}
				}
			}
		})
	}
}
