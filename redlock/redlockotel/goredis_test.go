package redlockotel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlockotel"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// noClientRoots lets no trace begin with the span of a client. So it drops go-redis' spans of
// commands that no caller has sent.
type noClientRoots struct{ sdktrace.Sampler }

func (s noClientRoots) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.Kind == trace.SpanKindClient {
		return sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState()}
	}
	return s.Sampler.ShouldSample(p)
}

func withoutClientRoots() *sdktrace.TracerProvider {
	sampler := sdktrace.ParentBased(noClientRoots{sdktrace.AlwaysSample()}) // asked for spans without a parent
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))
}

// instrumented runs a session on clients with go-redis' own instrumentation. It returns the spans and
// all that was exported, as JSON, and what must not be there. The session's caller has the trace id.
func instrumented(t *testing.T, cfg redlock.Config, tracers *sdktrace.TracerProvider, opts ...redisotel.TracingOption) (
	spans tracetest.SpanStubs, exported string, secret secrets, caller trace.TraceID,
) {
	t.Helper()
	exporter, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	tracers.RegisterSpanProcessor(sdktrace.NewSimpleSpanProcessor(exporter))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	masters := redlocktest.Start(t, 3)
	clients := masters.Clients()
	for _, c := range clients {
		require.NoError(t, redisotel.InstrumentTracing(c, append(opts, redisotel.WithTracerProvider(tracers))...))
		require.NoError(t, redisotel.InstrumentMetrics(c, redisotel.WithMeterProvider(meters)))
	}
	observer, err := redlockotel.New(redlockotel.WithMeterProvider(meters), redlockotel.WithTracerProvider(tracers))
	require.NoError(t, err)
	cfg.Observer = observer
	locks, err := redlock.New(clients, cfg)
	require.NoError(t, err)
	ctx, span := tracers.Tracer("caller").Start(t.Context(), "work")
	secret = session(t, ctx, locks, masters)
	require.NoError(t, clients[0].(*redis.Client).Get(ctx, "foreign").Err()) // a command of the caller's own
	span.End()
	require.NoError(t, locks.Close())

	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	spans = exporter.GetSpans()
	text, err := json.Marshal([]any{all, spans})
	require.NoError(t, err)
	require.True(t, strings.Contains(string(text), "db.client.connections.use_time"), "no metrics of go-redis")
	return spans, string(text), secret, span.SpanContext().TraceID()
}

// go-redis' hooks see no value, as values are passed by reference. The spans of the library's
// commands have no parent. With the default options they show keys, and always what servers quote in
// errors.
func TestGoRedisInstrumentation(t *testing.T) {
	for name, cfg := range map[string]redlock.Config{
		"default":        {},
		"fair":           {Fair: true},
		"fencing, guard": {Fencing: true, RestartGuard: 6 * ttl},
	} {
		t.Run(name, func(t *testing.T) {
			for statements, opts := range map[string][]redisotel.TracingOption{
				"default":            nil,
				"with statements":    {redisotel.WithDBStatement(true)},
				"without statements": {redisotel.WithDBStatement(false)},
			} {
				spans, exported, secret, caller := instrumented(t, cfg, sdktrace.NewTracerProvider(), opts...)
				absent(t, exported, secret...)
				if statements == "without statements" {
					absent(t, exported, key)
				} else {
					assert.True(t, strings.Contains(exported, key), "no key in the text of commands")
				}
				assert.True(t, strings.Contains(exported, quoted), "a server's error is cut, as this library does it")
				orphans := 0
				for _, s := range spans {
					if s.SpanKind == trace.SpanKindClient && !s.Parent.IsValid() {
						orphans++
					}
					if s.SpanContext.TraceID() == caller {
						assert.NotRegexp(t, `\b(set|eval|evalsha|info)\b`, s.Name)
					}
				}
				assert.Greater(t, orphans, 20)
			}
		})
	}
}

// A sampler drops the spans without parent, and keeps the caller's, this package's, and those of the
// caller's own commands.
func TestGoRedisWithoutOrphans(t *testing.T) {
	spans, exported, _, caller := instrumented(t, redlock.Config{}, withoutClientRoots())
	absent(t, exported, quoted)
	names := map[string]int{}
	for _, s := range spans {
		assert.Equal(t, caller, s.SpanContext.TraceID(), s.Name)
		names[s.Name]++
	}
	assert.Positive(t, names["redlock.acquire"])
	assert.Equal(t, 1, names["work"])
	assert.Equal(t, 1, names["get"])
}
