package redlockotel_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlockotel"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

func Example() {
	masters, err := redlocktest.New(3) // in production, the URLs of three or five Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	reader := sdkmetric.NewManualReader() // in production, an exporter
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	observer, err := redlockotel.New(redlockotel.WithMeterProvider(provider)) // or New(), for the global providers
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlock.Open(masters.URLs(), redlock.Config{Observer: observer})
	if err != nil {
		log.Fatal(err)
	}
	err = locks.Do(context.Background(), "search-index", 10*time.Second, func(ctx context.Context) error {
		fmt.Println("rebuilding the index")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := locks.Close(); err != nil { // the Observer has heard of everything now
		log.Fatal(err)
	}

	var metrics metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &metrics); err != nil {
		log.Fatal(err)
	}
	for _, m := range metrics.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name)
	}
	// Output:
	// rebuilding the index
	// redlock.acquire.duration
	// redlock.hold.duration
	// redlock.release.duration
	// redlock.held
	// redlock.waiting
	// redlock.node.votes
	// redlock.node.vote.duration
}

// An attribute with few values, for the keys "invoice:4711", "invoice:4712", "report:nightly", …
func ExampleWithKey() {
	observer, err := redlockotel.New(
		redlockotel.WithKey(func(key string) attribute.KeyValue {
			class, _, _ := strings.Cut(key, ":")
			return attribute.String("app.lock", class)
		}),
	)
	if err != nil {
		log.Fatal(err)
	}
	_ = redlock.Config{Observer: observer}
}

// global is the beginning of the documentation.
func global(urls []string) error {
	observer, err := redlockotel.New() // to the global MeterProvider and TracerProvider
	if err != nil {
		return err
	}
	locks, err := redlock.Open(urls, redlock.Config{Observer: observer})
	if err != nil {
		return err
	}
	return locks.Close()
}
