package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

const (
	job      = "shop"
	password = "correct-horse-battery"
	// ttl is the longest of the test, and so the restart guard. It is longer than the time for which
	// RedlockNodeQuarantined waits.
	ttl = 6 * time.Second
)

// fixture is two instances of the service on five masters, and a Prometheus that scrapes them.
type fixture struct {
	monitor
	masters []*redisserver.Server
	a, b    *service
	urls    map[string]string // of the instances
	secrets []string
}

func start(t *testing.T) *fixture {
	f := &fixture{urls: map[string]string{}}
	f.masters = redisserver.Start(t, 5, redisserver.RequirePass(password))
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSampler(trace.AlwaysSample())))

	var urls []string
	for _, m := range f.masters {
		urls = append(urls, m.URL())
	}
	targets := map[string]string{}
	instance := func(name string) *service {
		s, err := newService(urls, ttl)
		require.NoError(t, err)
		server := httptest.NewServer(s.handler())
		ctx, stop := context.WithCancel(t.Context())
		var reports sync.WaitGroup
		reports.Go(func() { _ = s.makeReports(ctx, 500*time.Millisecond) })
		t.Cleanup(func() {
			stop()
			reports.Wait()
			server.Close()
			assert.NoError(t, s.locks.Close())
		})
		f.urls[name], targets[name] = server.URL, server.Listener.Addr().String()
		return s
	}
	f.a, f.b = instance("a"), instance("b")
	f.monitor = startMonitor(t, job, targets)
	return f
}

// acquire takes a lock and keeps it alive.
func (f *fixture) acquire(t *testing.T, s *service, key string, ttl time.Duration) *redlock.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lock, err := s.locks.Acquire(ctx, key, ttl)
	require.NoError(t, err)
	f.secrets = append(f.secrets, lock.Value()[:36]) // the random part
	lock.KeepAlive()
	return lock
}

// get returns an instance's answer.
func (f *fixture) get(ctx context.Context, t require.TestingT, instance, path, accept string) (status int, text string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.urls[instance]+path, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// awaitHealth waits for a status of the readiness probes.
func (f *fixture) awaitHealth(t *testing.T, status int) {
	t.Helper()
	eventually(t, "/healthz", func(ctx context.Context, c *assert.CollectT) {
		for instance := range f.urls {
			got, text := f.get(ctx, c, instance, "/healthz", "")
			assert.Equal(c, status, got, text)
		}
	})
}

// alerts returns those with a name on the masters at these places.
func (f *fixture) alerts(name string, masters ...int) []string {
	var alerts []string
	for _, i := range masters {
		alerts = append(alerts, fmt.Sprint(name, " ", f.masters[i].Port()))
	}
	return alerts
}

// The probe fails while no majority votes, and its votes are among the metrics even if the service
// locks nothing.
func TestReadiness(t *testing.T) {
	masters := redlocktest.Start(t, 3)
	s, err := newService(masters.URLs(), ttl)
	require.NoError(t, err)
	defer s.locks.Close()
	get := func(path string) *httptest.ResponseRecorder {
		response := httptest.NewRecorder()
		s.handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, nil))
		return response
	}

	eventually(t, "/healthz", func(_ context.Context, c *assert.CollectT) {
		assert.Equal(c, http.StatusOK, get("/healthz").Code)
	})
	masters.Kill(0, 1)
	eventually(t, "/healthz", func(_ context.Context, c *assert.CollectT) {
		response := get("/healthz")
		assert.Equal(c, http.StatusServiceUnavailable, response.Code)
		assert.Equal(c, "no_quorum\n", response.Body.String())
	})
	eventually(t, "/metrics", func(_ context.Context, c *assert.CollectT) {
		metrics := get("/metrics").Body.String()
		for _, m := range masters.All() {
			_, port, _ := strings.Cut(m.Addr(), ":")
			assert.Regexp(c, `redlock_node_votes_total{.*redlock_vote="granted",.*server_port="`+port+`"} `, metrics)
		}
	})
}

// Real masters fail in each way that an alert is for. The alert fires, and clears when the fault is
// mended.
func TestAlertsAndDashboard(t *testing.T) {
	f := start(t)
	step := func(name string, run func(*testing.T)) {
		if !t.Failed() { // a step begins with what the one before has left
			t.Run(name, run)
		}
	}

	// At first the masters are in quarantine, as they have just been started.
	f.awaitHealth(t, http.StatusOK)
	f.await(t)

	step("one master hangs", func(t *testing.T) {
		require.NoError(t, f.masters[0].Pause())
		f.await(t, f.alerts("RedlockNodeWithoutVotes", 0)...)
		f.awaitHealth(t, http.StatusOK)
	})
	step("and a second one is down", func(t *testing.T) {
		f.masters[1].Kill()
		f.await(t, append(f.alerts("RedlockNodeWithoutVotes", 0, 1), "RedlockQuorumAtRisk")...)
		f.awaitHealth(t, http.StatusOK)
	})
	step("and a third one is down", func(t *testing.T) {
		began := time.Now()
		lock := f.acquire(t, f.a, "lost", 2*time.Second)
		f.masters[2].Kill()
		f.awaitFired(t, began, append(f.alerts("RedlockNodeWithoutVotes", 0, 1, 2), "RedlockNoQuorum", "RedlockLocksLost expired")...)
		f.awaitHealth(t, http.StatusServiceUnavailable)
		assert.ErrorIs(t, context.Cause(lock.Context()), redlock.ErrExpired)
		assert.NotContains(t, f.firing(t.Context(), t), "RedlockQuorumAtRisk", "RedlockNoQuorum says more")
	})
	step("all masters are back", func(t *testing.T) {
		began := time.Now()
		require.NoError(t, f.masters[0].Resume())
		require.NoError(t, f.masters[1].Restart())
		require.NoError(t, f.masters[2].Restart())
		f.awaitFired(t, began, f.alerts("RedlockNodeQuarantined", 1, 2)...)
		f.awaitHealth(t, http.StatusOK)
		f.await(t)
	})
	step("renewals are late", func(t *testing.T) {
		began := time.Now()
		lock := f.acquire(t, f.b, "late", ttl)
		until := lock.Until()
		for _, m := range f.masters[:3] {
			require.NoError(t, m.Pause())
		}
		eventually(t, "less than a third of the ttl", func(_ context.Context, c *assert.CollectT) {
			assert.Less(c, time.Until(until), ttl/4)
		})
		for _, m := range f.masters[:3] {
			require.NoError(t, m.Resume())
		}
		eventually(t, "a renewal", func(_ context.Context, c *assert.CollectT) {
			assert.True(c, lock.Until().After(until))
		})
		f.awaitFired(t, began, "RedlockRenewalsLate")
		assert.NotContains(t, f.fired(t.Context(), t, began), "RedlockLocksLost expired")
		f.await(t) // further renewals are in time
		require.NoError(t, lock.Release(t.Context()))
	})
	step("waits are long", func(t *testing.T) {
		f.work(t, func() { f.await(t, "RedlockWaitsLong") })
		f.await(t)
	})
	step("dashboard", f.testDashboard)
	step("exemplars", f.testExemplars)
	step("no secrets", f.testNoSecrets)
}

// work has three callers of each instance hold one key, one after the other, for longer than
// RedlockWaitsLong allows a wait to be, until during returns.
func (f *fixture) work(t *testing.T, during func()) {
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer stop()
	for _, s := range []*service{f.a, f.a, f.a, f.b, f.b, f.b} {
		callers.Go(func() {
			for ctx.Err() == nil {
				_ = s.locks.Do(ctx, "busy", ttl, func(ctx context.Context) error {
					select {
					case <-ctx.Done():
					case <-time.After(700 * time.Millisecond): // of work
					}
					return nil
				})
			}
		})
	}
	during()
}

// A histogram's exemplar leads from Prometheus to the trace of the acquisition.
func (f *fixture) testExemplars(t *testing.T) {
	found, err := f.QueryExemplars(t.Context(), `redlock_wait_duration_seconds_bucket`, f.began, time.Now())
	require.NoError(t, err)
	require.NotEmpty(t, found)
	assert.Regexp(t, `^[0-9a-f]{32}$`, found[0].Exemplars[0].Labels["trace_id"])
}

// No metric, exemplar or label has a password, a lock's value or a handle.
func (f *fixture) testNoSecrets(t *testing.T) {
	lock := f.acquire(t, f.a, "handed-over", ttl)
	handle, err := lock.Detach()
	require.NoError(t, err)
	lock, err = f.b.locks.Resume(t.Context(), handle, ttl)
	require.NoError(t, err)
	require.NoError(t, lock.Release(t.Context()))
	secrets := append([]string{password, handle, strings.Fields(handle)[0]}, f.secrets...)
	eventually(t, "a scrape after the Resume", func(ctx context.Context, c *assert.CollectT) {
		assert.NotEmpty(c, f.query(ctx, c, `redlock_acquire_duration_seconds_count{redlock_operation="resume"}`))
	})

	var texts []string
	for instance := range f.urls {
		for _, accept := range []string{"text/plain", "application/openmetrics-text;version=1.0.0"} {
			status, text := f.get(t.Context(), t, instance, "/metrics", accept)
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, text, "redlock_held")
			texts = append(texts, text)
		}
	}
	names, _, _, err := f.LabelNames(t.Context(), nil, f.began, time.Now())
	require.NoError(t, err)
	for _, name := range names {
		values, _, _, err := f.LabelValues(t.Context(), string(name), nil, f.began, time.Now())
		require.NoError(t, err)
		texts = append(texts, fmt.Sprint(name, values))
	}
	exemplars, err := f.QueryExemplars(t.Context(), `{__name__=~"redlock_.+"}`, f.began, time.Now())
	require.NoError(t, err)
	texts = append(texts, fmt.Sprint(exemplars))

	for _, text := range texts {
		for i, secret := range secrets {
			assert.False(t, strings.Contains(text, secret), "secret %d in %.60s…", i, text)
		}
	}
	assert.Contains(t, fmt.Sprint(texts), f.masters[0].Addr()[:9], "the masters' addresses are no secret")
}
