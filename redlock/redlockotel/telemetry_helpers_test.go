package redlockotel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlockotel"
)

const key, ttl = virtual.Key, virtual.TTL

// telemetry is an Observer, and what it has exported.
type telemetry struct {
	testing.TB
	redlock.Observer
	reader *sdkmetric.ManualReader
	spans  *tracetest.InMemoryExporter
	tracer trace.Tracer // of callers
}

// observe returns an Observer with the options. Every span is sampled.
func observe(t testing.TB, opts ...redlockotel.Option) *telemetry {
	return observeViews(t, nil, opts...)
}

func observeViews(t testing.TB, views []sdkmetric.View, opts ...redlockotel.Option) *telemetry {
	t.Helper()
	o := &telemetry{TB: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewInMemoryExporter()}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader), sdkmetric.WithView(views...))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(o.spans))
	o.tracer = tracers.Tracer("caller")
	observer, err := redlockotel.New(append([]redlockotel.Option{
		redlockotel.WithMeterProvider(meters), redlockotel.WithTracerProvider(tracers),
	}, opts...)...)
	require.NoError(t, err)
	o.Observer = observer
	return o
}

// instruments returns what the Observer has measured, by the names of the instruments.
func (o *telemetry) instruments() map[string]metricdata.Metrics {
	o.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(o, o.reader.Collect(context.Background(), &all))
	found := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		require.Equal(o, "github.com/quorumlock/redlock/redlock/redlockotel", scope.Scope.Name)
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

// point is one time series: a histogram has count and sum, others have sum alone.
type point struct {
	attributes attribute.Set
	count      uint64
	sum        float64
	bounds     []float64
	exemplars  []trace.SpanContext // where they lead
}

// points returns the time series of an instrument.
func points(m metricdata.Metrics) (kind string, points []point) {
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			points = append(points, point{p.Attributes, p.Count, p.Sum, p.Bounds, spanContexts(p.Exemplars)})
		}
		return "histogram", points
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{p.Attributes, 0, float64(p.Value), nil, spanContexts(p.Exemplars)})
		}
		if data.IsMonotonic {
			return "counter", points
		}
		return "up-down counter", points
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{p.Attributes, 0, float64(p.Value), nil, spanContexts(p.Exemplars)})
		}
		return "gauge", points
	}
	return fmt.Sprintf("%T", m.Data), nil
}

func spanContexts[N int64 | float64](exemplars []metricdata.Exemplar[N]) (found []trace.SpanContext) {
	for _, e := range exemplars {
		found = append(found, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(e.TraceID), SpanID: trace.SpanID(e.SpanID),
		}))
	}
	return found
}

// values returns the time series of instruments that begin with prefix, as text:
// "redlock.held{}" is "1", and a histogram is its count and its sum, "2: 0.004".
func (o *telemetry) values(prefix string) map[string]string {
	o.Helper()
	found := map[string]string{}
	for name, m := range o.instruments() {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		kind, points := points(m)
		for _, p := range points {
			series := name + "{" + p.attributes.Encoded(attribute.DefaultEncoder()) + "}"
			if kind == "histogram" {
				found[series] = fmt.Sprintf("%d: %.4g", p.count, p.sum)
			} else {
				found[series] = fmt.Sprint(p.sum)
			}
		}
	}
	return found
}

// ended returns the spans that have ended, in that order.
func (o *telemetry) ended() tracetest.SpanStubs { return o.spans.GetSpans() }

// names returns the names of the spans that have ended.
func (o *telemetry) names() (names []string) {
	for _, s := range o.ended() {
		names = append(names, s.Name)
	}
	return names
}

// attributes returns attributes as text.
func attributes(kvs []attribute.KeyValue) map[string]string {
	found := map[string]string{}
	for _, kv := range kvs {
		found[string(kv.Key)] = kv.Value.String()
	}
	return found
}

// attributeKeys returns the names of the attributes of an instrument's time series.
func attributeKeys(points []point) []string {
	keys := map[string]bool{}
	for _, p := range points {
		for _, kv := range p.attributes.ToSlice() {
			keys[string(kv.Key)] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// exported returns everything that was exported, as JSON.
func (o *telemetry) exported() string {
	o.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(o, o.reader.Collect(context.Background(), &all))
	text, err := json.Marshal([]any{all, o.ended()})
	require.NoError(o, err)
	return string(text)
}
