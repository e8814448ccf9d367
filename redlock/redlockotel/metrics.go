package redlockotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/quorumlock/redlock/redlock"
)

// metrics are the instruments. They measure with the context of the call, so that an exemplar leads
// to its trace.
type metrics struct {
	attributes *attributeSets

	acquireDuration, waitDuration, holdDuration metric.Float64Histogram
	extendDuration, releaseDuration             metric.Float64Histogram
	renewalLeft                                 metric.Float64Histogram
	held, waiting                               metric.Int64UpDownCounter
	lost                                        metric.Int64Counter

	nodeVotes        metric.Int64Counter
	nodeVoteDuration metric.Float64Histogram
	nodeQuarantined  metric.Int64Gauge
}

// Boundaries of buckets in seconds. A round trip takes 0.2 ms or more, and NodeTimeout ends a round,
// or a client's read timeout. A lock may be held and waited for much longer.
var (
	oneRound = []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5}
	longer   = []float64{0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 3600}
	tenths   = []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
)

func newMetrics(provider metric.MeterProvider, key func(string) attribute.KeyValue) (*metrics, error) {
	meter := provider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	var failed []error
	histogram := func(name, unit string, bounds []float64, description string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(bounds...))
		failed = append(failed, err)
		return h
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		failed = append(failed, err)
		return c
	}
	upDown := func(name, unit, description string) metric.Int64UpDownCounter {
		c, err := meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		failed = append(failed, err)
		return c
	}
	gauge := func(name, unit, description string) metric.Int64Gauge {
		g, err := meter.Int64Gauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		failed = append(failed, err)
		return g
	}
	m := &metrics{
		attributes: newAttributeSets(key),

		acquireDuration: histogram("redlock.acquire.duration", "s", longer, "Duration of acquisitions, with the time for which they waited."),
		waitDuration:    histogram("redlock.wait.duration", "s", longer, "Time for which acquisitions waited, of those that did."),
		holdDuration:    histogram("redlock.hold.duration", "s", longer, "Time from the acquisition of locks to their end."),
		extendDuration:  histogram("redlock.extend.duration", "s", oneRound, "Duration of extensions and renewals."),
		releaseDuration: histogram("redlock.release.duration", "s", oneRound, "Duration of releases."),
		renewalLeft:     histogram("redlock.renewal.left", "1", tenths, "Validity that was left when a renewal was decided, as a part of the ttl."),
		held:            upDown("redlock.held", "{lock}", "Locks that are held."),
		waiting:         upDown("redlock.waiting", "{caller}", "Acquisitions that are under way."),
		lost:            counter("redlock.lost", "{lock}", "Locks that were lost while they were held."),

		nodeVotes:        counter("redlock.node.votes", "{vote}", "Votes of nodes."),
		nodeVoteDuration: histogram("redlock.node.vote.duration", "s", oneRound, "Time until a node's vote was read or given up."),
		nodeQuarantined:  gauge("redlock.node.quarantined", "{server}", "1 while the votes of a server do not count, 0 afterwards."),
	}
	return m, errors.Join(failed...)
}

func (m *metrics) acquireBegan(ctx context.Context, key string) {
	m.waiting.Add(ctx, 1, m.attributes.of(labels{}, key).add...)
}

func (m *metrics) acquireEnded(ctx context.Context, key string) {
	m.waiting.Add(ctx, -1, m.attributes.of(labels{}, key).add...)
}

func (m *metrics) operationEnded(ctx context.Context, r redlock.OperationResult) {
	out, took := outcome(r), r.Elapsed.Seconds()
	switch r.Op {
	case redlock.OpAcquire, redlock.OpResume:
		m.acquireDuration.Record(ctx, took, m.attributes.of(labels{operation: r.Op, outcome: out}, r.Key).record...)
		if r.Waited > 0 {
			m.waitDuration.Record(ctx, r.Waited.Seconds(), m.attributes.of(labels{outcome: out}, r.Key).record...)
		}
		if r.Err == nil {
			m.held.Add(ctx, 1, m.attributes.of(labels{}, r.Key).add...)
		}
	case redlock.OpExtend, redlock.OpRenew:
		m.extendDuration.Record(ctx, took, m.attributes.of(labels{operation: r.Op, outcome: out}, r.Key).record...)
		// Merged renewals may have different ttls.
		if r.Op == redlock.OpRenew && r.Count == 1 {
			m.renewalLeft.Record(ctx, r.Left.Seconds()/r.TTL.Seconds(), m.attributes.of(labels{}, r.Key).record...)
		}
	case redlock.OpRelease:
		m.releaseDuration.Record(ctx, took, m.attributes.of(labels{outcome: out}, r.Key).record...)
	}
}

func (m *metrics) lockEnded(ctx context.Context, end redlock.LockEnd) {
	ended := m.attributes.of(labels{cause: redlock.Cause(end.Cause)}, end.Key)
	m.held.Add(ctx, -1, m.attributes.of(labels{}, end.Key).add...)
	m.holdDuration.Record(ctx, end.Held.Seconds(), ended.record...)
	if end.Lost() {
		m.lost.Add(ctx, 1, ended.add...)
	}
}

func (m *metrics) nodeVoted(ctx context.Context, v redlock.NodeVote) {
	m.nodeVotes.Add(ctx, int64(v.Count), m.attributes.of(labels{node: v.Addr, vote: v.Vote.String()}, "").add...)
	m.nodeVoteDuration.Record(ctx, v.Latency.Seconds(), m.attributes.of(labels{node: v.Addr}, "").record...)
}

func (m *metrics) quarantined(q redlock.Quarantine, state int64) {
	m.nodeQuarantined.Record(context.Background(), state, metric.WithAttributes(serverAttributes(quarantinedAddr(q))...))
}
