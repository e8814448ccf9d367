// Command monitoring is a service whose locks can be watched with Prometheus. docs/observability.md
// explains it.
package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlockotel"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); ctx.Err() == nil {
		slog.Error("the service ended", "error", err)
		os.Exit(1)
	}
}

// run serves on port 8080 and makes a report every ten seconds, until ctx ends or the server fails.
func run(ctx context.Context) error {
	s, err := newService(strings.Split(os.Getenv("REDLOCK_NODES"), ","), 10*time.Second)
	if err != nil {
		return err
	}
	defer s.locks.Close()
	server := &http.Server{Addr: ":8080", Handler: s.handler(), ReadHeaderTimeout: time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(server.ListenAndServe)
	group.Go(func() error { return s.makeReports(ctx, 10*time.Second) })
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return group.Wait()
}

// service makes reports under a lock.
type service struct {
	locks    *redlock.Redlock
	ttl      time.Duration
	registry *prometheus.Registry
}

// newService returns a service that locks on the masters. The caller closes its locks.
func newService(masters []string, ttl time.Duration) (*service, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	meters := metric.NewMeterProvider(metric.WithReader(exporter))
	observer, err := redlockotel.New(redlockotel.WithMeterProvider(meters))
	if err != nil {
		return nil, err
	}
	locks, err := redlock.Open(masters, redlock.Config{
		Observer:     observer,
		Logger:       slog.Default(),
		RestartGuard: ttl,
	})
	if err != nil {
		return nil, err
	}
	return &service{locks, ttl, registry}, nil
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	// Exemplars need OpenMetrics.
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.locks.Healthy(r.Context()); err != nil {
			http.Error(w, redlock.Cause(err), http.StatusServiceUnavailable)
		}
	})
	return mux
}

// makeReports makes a report at each interval, until ctx ends. Of all instances, one at a time makes
// a report, and the others wait for it.
func (s *service) makeReports(ctx context.Context, interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := s.makeReport(ctx, interval); err != nil {
			slog.Warn("there is no report", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// makeReport gives up after the timeout.
func (s *service) makeReport(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.locks.Do(ctx, "report", s.ttl, func(ctx context.Context) error {
		select {
		case <-ctx.Done(): // the lock is lost, or the report takes too long
			return context.Cause(ctx)
		case <-time.After(timeout / 10): // the work
			return nil
		}
	})
}
