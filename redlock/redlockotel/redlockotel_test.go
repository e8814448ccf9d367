package redlockotel_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/quorumlock/redlock/redlock/redlockotel"
)

func TestMistakesAreErrors(t *testing.T) {
	for want, opt := range map[string]redlockotel.Option{
		"redlockotel: opts[0] is nil":                          nil,
		"redlockotel: WithMeterProvider: the provider is nil":  redlockotel.WithMeterProvider(nil),
		"redlockotel: WithTracerProvider: the provider is nil": redlockotel.WithTracerProvider(nil),
		"redlockotel: WithKey: the function is nil":            redlockotel.WithKey(nil),
		"redlockotel: WithSpanKey: the function is nil":        redlockotel.WithSpanKey(nil),
		"redlockotel: no counters today\nno counters today":    redlockotel.WithMeterProvider(meters{}),
	} {
		_, err := redlockotel.New(opt)
		assert.EqualError(t, err, want)
	}
}

// meters is a MeterProvider that cannot make counters.
type meters struct{ noop.MeterProvider }

func (meters) Meter(string, ...metric.MeterOption) metric.Meter { return meter{} }

type meter struct{ noop.Meter }

func (meter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errors.New("no counters today")
}

// Without options an Observer reports to the global providers, which do nothing here.
func TestGlobalProviders(t *testing.T) {
	require.Error(t, global(nil)) // no URL
	require.NoError(t, global([]string{"redis://127.0.0.1:1"}))
}
