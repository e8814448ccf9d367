package redlockotel_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlockotel"
)

// Each operation with a caller is a child of the caller's span, and lasts as long as the operation
// did. A renewal has no span.
func TestSpans(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		ctx, caller := o.tracer.Start(b.Context(), "work")
		lock, err := b.Redlock.Acquire(ctx, key, ttl)
		require.NoError(b, err)
		lock.KeepAlive()
		time.Sleep(ttl / 2)
		require.NoError(b, lock.Extend(ctx, ttl))
		b.Settle() // so that no lane is busy
		handle, err := lock.Detach()
		require.NoError(b, err)
		lock, err = b.Redlock.Resume(ctx, handle, ttl)
		require.NoError(b, err)
		b.Settle()
		require.NoError(b, lock.ReleaseAfter(ctx, time.Second))
		time.Sleep(2 * time.Second)
		require.NoError(b, b.Redlock.Do(ctx, key, ttl, func(context.Context) error { b.Settle(); return nil }))
		require.True(b, caller.IsRecording(), "an operation has ended the caller's span")

		require.Equal(b, []string{
			"redlock.acquire", "redlock.extend", "redlock.resume", "redlock.release", "redlock.acquire", "redlock.release",
		}, o.names())
		for _, span := range o.ended() {
			assert.Equal(b, caller.SpanContext().SpanID(), span.Parent.SpanID(), span.Name)
			assert.Equal(b, trace.SpanKindInternal, span.SpanKind, span.Name)
			assert.Equal(b, codes.Unset, span.Status.Code, span.Name)
			assert.Equal(b, 2*time.Millisecond, span.EndTime.Sub(span.StartTime), span.Name)
		}
		ended := o.ended()
		assert.Equal(b, map[string]string{"redlock.outcome": "acquired", "redlock.rounds": "1", "redlock.ttl": "10"}, attributes(ended[0].Attributes))
		assert.Equal(b, map[string]string{"redlock.outcome": "granted", "redlock.rounds": "1"}, attributes(ended[3].Attributes))
	})
}

// Each round is an event at the time of its decision.
func TestRounds(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		b.Steal(key, 0, 2)
		b.Masters.Master(1).Delay(10*time.Millisecond, 0)
		lock := b.Acquire(key, ttl)
		require.NoError(b, lock.Release(b.Context()))
		require.Equal(b, []string{"redlock.acquire", "redlock.release"}, o.names())
		acquired := o.ended()[0]
		require.Len(b, acquired.Events, 1)
		round := acquired.Events[0]
		assert.Equal(b, "redlock.round", round.Name)
		assert.Equal(b, 10*time.Millisecond, round.Time.Sub(acquired.StartTime))
		assert.Equal(b, map[string]string{
			"redlock.operation": "acquire", "redlock.outcome": "won", "redlock.granted": "2", "redlock.need": "2",
			"redlock.nodes": `["10.0.0.1:6379","10.0.0.2:6379","10.0.0.3:6379"]`,
			"redlock.votes": `["granted","granted","refused"]`,
		}, attributes(round.Attributes))
		assert.Equal(b, "release", attributes(o.ended()[1].Events[0].Attributes)["redlock.operation"])
	})
}

// A wait has an event for each round in which it asked for the key.
func TestRoundsOfAWait(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		holder := b.NewRedlock(redlock.Config{})
		lock, err := holder.TryAcquire(b.Context(), key, ttl)
		require.NoError(b, err)
		time.AfterFunc(time.Second, func() { assert.NoError(b, lock.Release(b.Context())) })
		_, err = b.Redlock.Acquire(b.Context(), key, ttl)
		require.NoError(b, err)
		require.Equal(b, []string{"redlock.acquire"}, o.names())
		span := o.ended()[0]
		assert.GreaterOrEqual(b, span.EndTime.Sub(span.StartTime), time.Second)
		assert.Regexp(b, `^(1|0\.99)`, attributes(span.Attributes)["redlock.wait.duration"])
		events := span.Events
		require.GreaterOrEqual(b, len(events), 2)
		assert.Equal(b, 2*time.Millisecond, events[0].Time.Sub(span.StartTime))
		assert.Equal(b, "lost", attributes(events[0].Attributes)["redlock.outcome"])
		assert.Equal(b, "won", attributes(events[len(events)-1].Attributes)["redlock.outcome"])
	})
}

// The status of a span is Error if the operation has failed, unless callers must expect the answer.
func TestStatus(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		check := func(word string, status codes.Code, err, want error) {
			b.Helper()
			require.ErrorIs(b, err, want)
			ended := o.ended()
			span := ended[len(ended)-1]
			o.spans.Reset()
			assert.Equal(b, word, attributes(span.Attributes)["redlock.outcome"])
			assert.Equal(b, status, span.Status.Code, word)
			if status == codes.Error {
				assert.Equal(b, word, span.Status.Description)
				assert.Equal(b, word, attributes(span.Attributes)["error.type"])
			} else {
				assert.NotContains(b, attributes(span.Attributes), "error.type")
			}
		}
		lock := b.Acquire(key, ttl)
		_, err := b.Redlock.TryAcquire(b.Context(), key, ttl)
		check("held", codes.Unset, err, redlock.ErrHeld)
		impatient, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err = b.Redlock.Acquire(impatient, key, ttl)
		check("held", codes.Error, err, redlock.ErrHeld)
		require.NoError(b, lock.Release(b.Context()))
		check("released", codes.Unset, lock.Release(b.Context()), redlock.ErrReleased)
		check("released", codes.Error, lock.Extend(b.Context(), ttl), redlock.ErrReleased)
		lock = b.Acquire(key, ttl)
		for _, m := range b.Masters.All() {
			m.Miniredis().FlushAll()
		}
		check("not_held", codes.Error, lock.Release(b.Context()), redlock.ErrNotHeld)
		b.Masters.Kill(0, 1)
		_, err = b.Redlock.TryAcquire(b.Context(), key, ttl)
		check("no_quorum", codes.Error, err, redlock.ErrNoQuorum)
	})
}

// A span begins and ends when its operation did, by the Redlock's clock, and not when the Observer is
// called.
func TestTimes(t *testing.T) {
	o := observe(t)
	start := time.Now().Add(-time.Hour)
	for _, name := range []string{redlock.OpAcquire, redlock.OpResume, redlock.OpExtend, redlock.OpRelease} {
		op := redlock.Operation{Op: name, Key: key, Start: start}
		ctx := t.Context()
		if name == redlock.OpAcquire {
			ctx = o.AcquireBegan(ctx, op)
		}
		o.OperationEnded(ctx, redlock.OperationResult{Operation: op, Elapsed: time.Minute, Count: 1})
	}
	require.Len(t, o.ended(), 4)
	for _, span := range o.ended() {
		assert.True(t, span.StartTime.Equal(start), span.Name)
		assert.Equal(t, time.Minute, span.EndTime.Sub(span.StartTime), span.Name)
	}
}

// If a function that makes an attribute panics, that changes nothing but what is exported. The span in
// the context is then the caller's, and goes on.
func TestKeyFunctionPanics(t *testing.T) {
	panics := func(string) attribute.KeyValue { panic("no such key") }
	for name, opt := range map[string]redlockotel.Option{
		"WithKey": redlockotel.WithKey(panics), "WithSpanKey": redlockotel.WithSpanKey(panics),
	} {
		t.Run(name, func(t *testing.T) {
			observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
				ctx, caller := o.tracer.Start(b.Context(), "work")
				lock, err := b.Redlock.Acquire(ctx, key, ttl)
				require.NoError(b, err)
				require.NoError(b, lock.Release(ctx))
				assert.True(b, caller.IsRecording())
				assert.Empty(b, o.names())
				assert.Empty(b, o.values("redlock.waiting"))
			}, opt)
		})
	}
}

// Without a context, Release works as it does without an Observer.
func TestReleaseWithoutContext(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		//lint:ignore SA1012 Release does not use its context
		require.NoError(b, b.Acquire(key, ttl).Release(nil))
		b.Settle()
		assert.Equal(b, []string{"redlock.acquire", "redlock.release"}, o.names())
		assert.Equal(b, map[string]string{"redlock.held{}": "0"}, o.values("redlock.held"))
	})
}

// A sampler sees a span's attributes before it decides. Rounds are not described for a span that is
// not sampled.
func TestSampler(t *testing.T) {
	sampler := &samplerSpy{}
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sampler))
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		require.NoError(b, b.Acquire(key, ttl).Release(b.Context()))
		require.Len(b, sampler.asked, 2)
		assert.Equal(b, map[string]string{"redlock.ttl": "10", "redlock.key": key}, attributes(sampler.asked[0].Attributes))
		assert.Equal(b, map[string]string{"redlock.key": key}, attributes(sampler.asked[1].Attributes))
		assert.Empty(b, spans.GetSpans())
	}, redlockotel.WithTracerProvider(tracers), redlockotel.WithSpanKey(wholeKey))
}

type samplerSpy struct{ asked []sdktrace.SamplingParameters }

func (s *samplerSpy) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s.asked = append(s.asked, p)
	return sdktrace.SamplingResult{Decision: sdktrace.Drop}
}

func (s *samplerSpy) Description() string { return "spy" }
