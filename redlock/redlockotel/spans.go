package redlockotel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorumlock/redlock/redlock"
)

// spans makes a span of each operation that has a caller, as a child of the caller's span. The kind is
// internal: an operation asks several servers, and mostly waits for other holders of the key.
type spans struct {
	tracer trace.Tracer
	key    func(string) attribute.KeyValue // nil: none
}

func newSpans(provider trace.TracerProvider, key func(string) attribute.KeyValue) spans {
	return spans{provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)), key}
}

// start begins a span, with the attributes that a sampler may ask for.
func (s spans) start(ctx context.Context, op redlock.Operation) (context.Context, trace.Span) {
	kvs := make([]attribute.KeyValue, 0, 2)
	if op.TTL > 0 {
		kvs = append(kvs, ttlKey.Float64(op.TTL.Seconds()))
	}
	if s.key != nil {
		if kv := s.key(op.Key); kv.Valid() {
			kvs = append(kvs, kv)
		}
	}
	return s.tracer.Start(ctx, "redlock."+op.Op, trace.WithTimestamp(op.Start), trace.WithAttributes(kvs...))
}

// end ends a span with the result of its operation.
func (s spans) end(span trace.Span, r redlock.OperationResult) {
	defer span.End(trace.WithTimestamp(r.Start.Add(r.Elapsed)))
	if !span.IsRecording() {
		return
	}
	for _, round := range r.Traces() {
		addRound(span, round)
	}
	out := outcome(r)
	span.SetAttributes(outcomeKey.String(out), roundsKey.Int(r.Rounds))
	if r.Waited > 0 {
		span.SetAttributes(waitDurationKey.Float64(r.Waited.Seconds()))
	}
	if r.Err != nil && !expected(r) {
		span.SetAttributes(semconv.ErrorTypeKey.String(out))
		span.SetStatus(codes.Error, out)
	}
}

// expected reports whether a failure is an answer that callers must expect, and no fault.
func expected(r redlock.OperationResult) bool {
	switch redlock.Cause(r.Err) {
	case "held":
		return r.Waited == 0
	case "released":
		return r.Op == redlock.OpRelease
	}
	return false
}

// addRound adds a round as an event, at the time of its decision.
func addRound(span trace.Span, round redlock.Trace) {
	nodes, votes := make([]string, len(round.Nodes)), make([]string, len(round.Nodes))
	for i, n := range round.Nodes {
		nodes[i], votes[i] = n.Addr, n.Vote.String()
	}
	span.AddEvent("redlock.round", trace.WithTimestamp(round.Start.Add(round.Elapsed)), trace.WithAttributes(
		operationKey.String(round.Op),
		outcomeKey.String(round.Outcome.String()),
		grantedKey.Int(round.Granted),
		needKey.Int(round.Need),
		nodesKey.StringSlice(nodes),
		votesKey.StringSlice(votes),
	))
}
