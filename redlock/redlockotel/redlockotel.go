// Package redlockotel reports what a Redlock does to OpenTelemetry, as metrics and traces. It is a Go
// module of its own, so that package redlock does not depend on OpenTelemetry.
//
//	observer, err := redlockotel.New()
//	…
//	locks, err := redlock.Open(urls, redlock.Config{Observer: observer})
//
// docs/observability.md lists the metrics, the spans and their attributes.
//
// # Keys
//
// A lock's key is no attribute unless WithKey or WithSpanKey makes it one. Each value of an attribute
// makes further time series, and programs may use any number of keys.
//
// # Errors
//
// An operation that fails has the word of redlock.Cause as its outcome, and never the text of an
// error, which names keys. The span of such an operation has the status Error, unless the failure is
// an answer that its caller must expect:
//
//   - "held" of an acquisition that did not wait, as of TryAcquire. If Acquire waits until its context
//     ends, the status is Error.
//   - "released" of a second Release.
package redlockotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorumlock/redlock/redlock"
)

// scope names the instrumentation scope.
const scope = "github.com/quorumlock/redlock/redlock/redlockotel"

// Option configures an Observer of New.
type Option func(*config) error

type config struct {
	meters       metric.MeterProvider
	tracers      trace.TracerProvider
	key, spanKey func(string) attribute.KeyValue
}

// WithMeterProvider sets the MeterProvider. It defaults to the global one.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return func(c *config) error {
		c.meters = provider
		return given(provider != nil, "WithMeterProvider: the provider")
	}
}

// WithTracerProvider sets the TracerProvider. It defaults to the global one.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(c *config) error {
		c.tracers = provider
		return given(provider != nil, "WithTracerProvider: the provider")
	}
}

// WithKey sets a function that makes an attribute of a lock's key, for spans and for the metrics of
// locks. The metrics of nodes do not have it. The function must return few different attributes,
// such as the part of the key before its first colon. An attribute without a name is left out. Many
// goroutines may call the function at the same time.
//
// Defaults to none.
func WithKey(f func(key string) attribute.KeyValue) Option {
	return func(c *config) error {
		c.key = f
		return given(f != nil, "WithKey: the function")
	}
}

// WithSpanKey is WithKey for spans alone, and takes precedence there. The function may return any
// number of different attributes.
//
// Defaults to the function of WithKey.
func WithSpanKey(f func(key string) attribute.KeyValue) Option {
	return func(c *config) error {
		c.spanKey = f
		return given(f != nil, "WithSpanKey: the function")
	}
}

func given(ok bool, what string) error {
	if ok {
		return nil
	}
	return errors.New(what + " is nil")
}

// New returns an Observer for Config.Observer. Several Redlocks may share it. An error names an
// option that is nil, or is the MeterProvider's.
func New(opts ...Option) (redlock.Observer, error) {
	cfg := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("redlockotel: opts[%d] is nil", i)
		}
		if err := opt(&cfg); err != nil {
			return nil, fmt.Errorf("redlockotel: %w", err)
		}
	}
	if cfg.spanKey == nil {
		cfg.spanKey = cfg.key
	}
	metrics, err := newMetrics(cfg.meters, cfg.key)
	if err != nil {
		return nil, fmt.Errorf("redlockotel: %w", err)
	}
	return &observer{metrics: metrics, spans: newSpans(cfg.tracers, cfg.spanKey)}, nil
}

type observer struct {
	redlock.NoObserver
	metrics *metrics
	spans   spans
}

func (o *observer) AcquireBegan(ctx context.Context, op redlock.Operation) context.Context {
	ctx, span := o.spans.start(ctx, op)
	o.metrics.acquireBegan(ctx, op.Key)
	return context.WithValue(ctx, o, span)
}

func (o *observer) OperationEnded(ctx context.Context, result redlock.OperationResult) {
	switch result.Op {
	case redlock.OpRenew:
		// A renewal has no caller. The span of its lock's acquisition has ended.
		o.metrics.operationEnded(ctx, result)
	case redlock.OpAcquire:
		o.metrics.operationEnded(ctx, result)
		// If AcquireBegan has panicked, the span in ctx is the caller's.
		if span, began := ctx.Value(o).(trace.Span); began {
			o.metrics.acquireEnded(ctx, result.Key)
			o.spans.end(span, result)
		}
	default:
		ctx, span := o.spans.start(ctx, result.Operation)
		o.metrics.operationEnded(ctx, result)
		o.spans.end(span, result)
	}
}

func (o *observer) LockEnded(ctx context.Context, end redlock.LockEnd) {
	o.metrics.lockEnded(ctx, end)
}

func (o *observer) NodeVoted(ctx context.Context, vote redlock.NodeVote) {
	o.metrics.nodeVoted(ctx, vote)
}

func (o *observer) QuarantineBegan(q redlock.Quarantine) { o.metrics.quarantined(q, 1) }

func (o *observer) QuarantineEnded(q redlock.Quarantine) { o.metrics.quarantined(q, 0) }

// outcome returns the word for the result of an operation.
func outcome(result redlock.OperationResult) string {
	switch {
	case result.Err != nil:
		return redlock.Cause(result.Err)
	case result.Op == redlock.OpAcquire, result.Op == redlock.OpResume:
		return "acquired"
	default:
		return "granted" // "released" would be the cause of a second Release
	}
}
