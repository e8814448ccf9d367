package redlockotel_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlockotel"
)

// observed calls f with an Observer, and a Redlock of three masters that it observes. A round trip
// takes 2 ms.
func observed(t *testing.T, cfg redlock.Config, f func(o *telemetry, b *virtual.Bed), opts ...redlockotel.Option) {
	o := observe(t, opts...)
	observer := o.Observer
	o.Observer = redlock.NoObserver{} // while connections are made
	cfg.Observer = o
	virtual.Run(t, 3, cfg, func(b *virtual.Bed) {
		b.Delay(time.Millisecond, time.Millisecond)
		b.Warm()
		o.Observer = observer
		f(o, b)
	})
}

func TestAcquire(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		lock := b.Acquire(key, ttl)
		b.Settle()
		assert.Equal(b, map[string]string{
			"redlock.acquire.duration{redlock.operation=acquire,redlock.outcome=acquired}": "1: 0.002",
		}, o.values("redlock.acquire."))
		assert.Equal(b, "1", o.values("redlock.held")["redlock.held{}"])
		assert.Equal(b, "0", o.values("redlock.waiting")["redlock.waiting{}"])

		time.Sleep(time.Second)
		require.NoError(b, lock.Release(b.Context()))
		b.Settle()
		assert.Equal(b, map[string]string{"redlock.hold.duration{redlock.cause=released}": "1: 1.002"}, o.values("redlock.hold."))
		assert.Equal(b, map[string]string{"redlock.release.duration{redlock.outcome=granted}": "1: 0.002"}, o.values("redlock.release."))
		assert.Equal(b, map[string]string{"redlock.held{}": "0"}, o.values("redlock.held"))
		assert.Empty(b, o.values("redlock.wait."))
		assert.Empty(b, o.values("redlock.lost"))

		require.ErrorIs(b, lock.Release(b.Context()), redlock.ErrReleased)
		assert.Equal(b, map[string]string{
			"redlock.release.duration{redlock.outcome=granted}":  "1: 0.002",
			"redlock.release.duration{redlock.outcome=released}": "1: 0",
		}, o.values("redlock.release."))

		b.Acquire(key, ttl)
		_, err := b.Redlock.TryAcquire(b.Context(), key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld)
		assert.Contains(b, o.values("redlock.acquire."), "redlock.acquire.duration{redlock.operation=acquire,redlock.outcome=held}")
		assert.Equal(b, "1", o.values("redlock.held")["redlock.held{}"])
		assert.Equal(b, "0", o.values("redlock.waiting")["redlock.waiting{}"])
	})
}

// Callers that wait are counted while they wait. The time for which they waited is measured apart.
func TestAcquireWaits(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		lock := b.Acquire(key, ttl)
		b.Settle()
		var got *redlock.Lock
		acquired := make(chan struct{})
		go func() {
			defer close(acquired)
			var err error
			got, err = b.Redlock.Acquire(b.Context(), key, ttl)
			assert.NoError(b, err)
		}()
		impatient, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err := b.Redlock.Acquire(impatient, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld)
		assert.Equal(b, "1", o.values("redlock.waiting")["redlock.waiting{}"])
		time.Sleep(2 * time.Second)
		require.NoError(b, lock.Release(b.Context()))
		<-acquired
		values := o.values("redlock.wait")
		assert.Equal(b, "0", values["redlock.waiting{}"])
		assert.Regexp(b, `^1: (2\.99|3$|3\.0)`, values["redlock.wait.duration{redlock.outcome=acquired}"])
		assert.Regexp(b, `^1: (0\.99|1$)`, values["redlock.wait.duration{redlock.outcome=held}"])
		assert.Len(b, values, 3)
		require.NoError(b, got.Release(b.Context()))
		assert.Equal(b, map[string]string{"redlock.held{}": "0"}, o.values("redlock.held"))
	})
}

// A lock is lost because its validity ends, or because the nodes have forgotten it.
func TestLosses(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		lock := b.Acquire(key, ttl)
		b.Settle()
		for _, m := range b.Masters.All() {
			m.Miniredis().FlushAll()
		}
		require.ErrorIs(b, lock.Extend(b.Context(), ttl), redlock.ErrNotHeld)
		lock = b.Acquire(key, ttl)
		b.Settle()
		require.NoError(b, lock.Release(b.Context()))
		b.Settle()
		lock = b.Acquire(key, ttl)
		b.Settle()
		b.Masters.Kill(0, 1)
		<-lock.Context().Done()
		b.Settle()
		_, err := b.Redlock.TryAcquire(b.Context(), key, ttl)
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.Equal(b, map[string]string{
			"redlock.lost{redlock.cause=expired}":  "1",
			"redlock.lost{redlock.cause=not_held}": "1",
		}, o.values("redlock.lost"))
		assert.Equal(b, map[string]string{"redlock.held{}": "0"}, o.values("redlock.held"))
		assert.Equal(b, map[string]string{
			"redlock.hold.duration{redlock.cause=expired}":  "1: 9.896",
			"redlock.hold.duration{redlock.cause=not_held}": "1: 0.002",
			"redlock.hold.duration{redlock.cause=released}": "1: 0.002",
		}, o.values("redlock.hold."))
		assert.Contains(b, o.values("redlock.acquire."), "redlock.acquire.duration{redlock.operation=acquire,redlock.outcome=no_quorum}")
	})
}

// A renewal on time has two thirds of the ttl left.
func TestExtensions(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		lock := b.Acquire(key, ttl)
		b.Settle()
		require.NoError(b, lock.Extend(b.Context(), ttl))
		assert.Empty(b, o.values("redlock.renewal."))
		lock.KeepAlive()
		time.Sleep(2 * ttl / 5)
		require.NoError(b, lock.Release(b.Context()))
		assert.Equal(b, map[string]string{
			"redlock.extend.duration{redlock.operation=extend,redlock.outcome=granted}": "1: 0.002",
			"redlock.extend.duration{redlock.operation=renew,redlock.outcome=granted}":  "1: 0.002",
		}, o.values("redlock.extend."))
		assert.Equal(b, map[string]string{"redlock.renewal.left{}": "1: 0.6563"}, o.values("redlock.renewal."))
	})
}

// A lock that is handed over ends here, and begins there.
func TestResume(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		lock := b.Acquire(key, ttl)
		b.Settle()
		handle, err := lock.Detach()
		require.NoError(b, err)
		b.Settle()
		assert.Equal(b, map[string]string{"redlock.held{}": "0"}, o.values("redlock.held"))
		_, err = b.Redlock.Resume(b.Context(), handle, ttl)
		require.NoError(b, err)
		assert.Equal(b, map[string]string{"redlock.held{}": "1"}, o.values("redlock.held"))
		assert.Equal(b, "1: 0.002", o.values("redlock.acquire.")["redlock.acquire.duration{redlock.operation=resume,redlock.outcome=acquired}"])
		require.NoError(b, b.Redlock.Close())
		assert.Equal(b, map[string]string{"redlock.held{}": "0"}, o.values("redlock.held"))
		assert.Contains(b, o.values("redlock.hold."), "redlock.hold.duration{redlock.cause=detached}")
		assert.Contains(b, o.values("redlock.hold."), "redlock.hold.duration{redlock.cause=closed}")
	})
}

// Votes are counted by node.
func TestNodeVotes(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		b.Steal(key, 0, 0)
		b.Masters.Kill(1)
		_, err := b.Redlock.TryAcquire(b.Context(), key, ttl)
		require.Error(b, err)
		time.Sleep(time.Second)
		// Two rounds: to acquire the key, and to clean up.
		assert.Equal(b, map[string]string{
			"redlock.node.votes{redlock.vote=refused,server.address=10.0.0.1,server.port=6379}": "1",
			"redlock.node.votes{redlock.vote=granted,server.address=10.0.0.1,server.port=6379}": "1",
			"redlock.node.votes{redlock.vote=failed,server.address=10.0.0.2,server.port=6379}":  "2",
			"redlock.node.votes{redlock.vote=granted,server.address=10.0.0.3,server.port=6379}": "2",
		}, o.values("redlock.node.votes"))
		assert.Equal(b, "2: 0.004", o.values("redlock.node.")["redlock.node.vote.duration{server.address=10.0.0.1,server.port=6379}"])
	})
}

func TestQuarantine(t *testing.T) {
	observed(t, virtual.Guarded, func(o *telemetry, b *virtual.Bed) {
		require.NoError(b, b.Masters.Master(1).RestartEmpty())
		for range 2 { // the connection has broken, and there is a new one
			lock, err := b.Redlock.TryAcquire(b.Context(), key, ttl)
			require.NoError(b, err)
			time.Sleep(time.Second)
			require.NoError(b, lock.Release(b.Context()))
		}
		const series = "redlock.node.quarantined{server.address=10.0.0.2,server.port=6379}"
		assert.Equal(b, map[string]string{series: "1"}, o.values("redlock.node.quarantined"))
		time.Sleep(virtual.Quarantine)
		assert.Equal(b, map[string]string{series: "0"}, o.values("redlock.node.quarantined"))

		require.NoError(b, b.Masters.Master(1).RestartEmpty())
		for range 2 {
			b.Acquire("another", time.Second)
			time.Sleep(2 * time.Second)
		}
		assert.Equal(b, map[string]string{series: "1"}, o.values("redlock.node.quarantined"))
		require.NoError(b, b.Redlock.Close())
		assert.Equal(b, map[string]string{series: "0"}, o.values("redlock.node.quarantined"))
	})
}

// The time for which an acquisition waited is a part of its duration.
func TestWaitDuration(t *testing.T) {
	o := observe(t)
	op := redlock.Operation{Op: redlock.OpAcquire, Key: key, TTL: ttl, Start: time.Now()}
	ctx := o.AcquireBegan(t.Context(), op)
	assert.Equal(t, map[string]string{"redlock.waiting{}": "1"}, o.values(""))
	o.OperationEnded(ctx, redlock.OperationResult{Operation: op, Elapsed: 3 * time.Second, Waited: 2 * time.Second, Count: 1})
	assert.Equal(t, map[string]string{
		"redlock.acquire.duration{redlock.operation=acquire,redlock.outcome=acquired}": "1: 3",
		"redlock.wait.duration{redlock.outcome=acquired}":                              "1: 2",
		"redlock.waiting{}": "0",
		"redlock.held{}":    "1",
	}, o.values(""))
}

// Votes and renewals that were merged for a slow Observer count as many as they are, but their
// duration is measured once.
func TestMerged(t *testing.T) {
	o := observe(t)
	vote := redlock.NodeVote{Addr: "10.0.0.1:6379", Vote: quorum.Failed, Latency: time.Second, Err: errors.New("why"), Count: 7}
	o.NodeVoted(t.Context(), vote)
	o.OperationEnded(t.Context(), redlock.OperationResult{
		Operation: redlock.Operation{Op: redlock.OpRenew, TTL: ttl}, Elapsed: time.Second, Left: time.Second, Count: 7,
	})
	assert.Equal(t, map[string]string{
		"redlock.node.votes{redlock.vote=failed,server.address=10.0.0.1,server.port=6379}": "7",
		"redlock.node.vote.duration{server.address=10.0.0.1,server.port=6379}":             "1: 1",
		"redlock.extend.duration{redlock.operation=renew,redlock.outcome=granted}":         "1: 1",
	}, o.values(""))
}

// keyed performs every operation on keys that can be told from everything else.
func keyed(b *virtual.Bed) {
	lock, err := b.Redlock.Acquire(b.Context(), "orders:4711", ttl)
	require.NoError(b, err)
	require.NoError(b, lock.Extend(b.Context(), ttl))
	lock.KeepAlive()
	impatient, cancel := context.WithTimeout(b.Context(), ttl/2)
	defer cancel()
	_, err = b.Redlock.Acquire(impatient, "orders:4711", ttl)
	require.ErrorIs(b, err, redlock.ErrHeld)
	require.NoError(b, lock.Release(b.Context()))
	lock = b.Acquire("orders:4712", ttl)
	for _, m := range b.Masters.All() {
		m.Miniredis().FlushAll()
	}
	require.ErrorIs(b, lock.Extend(b.Context(), ttl), redlock.ErrNotHeld)
	b.Settle()
}

func wholeKey(key string) attribute.KeyValue { return attribute.String("redlock.key", key) }

func keyClass(key string) attribute.KeyValue {
	class, _, _ := strings.Cut(key, ":")
	return attribute.String("key.class", class)
}

// Without WithKey and WithSpanKey, a key is nowhere. An attribute without a name is left out.
func TestKeysAreNoAttributes(t *testing.T) {
	for name, opts := range map[string][]redlockotel.Option{
		"default": nil,
		"no name": {redlockotel.WithKey(func(string) attribute.KeyValue { return attribute.KeyValue{} })},
	} {
		t.Run(name, func(t *testing.T) {
			observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
				keyed(b)
				assert.NotContains(b, o.exported(), "orders")
			}, opts...)
		})
	}
}

// WithKey's attribute is on all spans and on the metrics of locks.
func TestWithKey(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		keyed(b)
		for name, m := range o.instruments() {
			_, points := points(m)
			for _, p := range points {
				class, has := p.attributes.Value("key.class")
				assert.Equal(b, !strings.HasPrefix(name, "redlock.node."), has, name)
				assert.Equal(b, has, class.AsString() == "orders", name)
			}
		}
		for _, span := range o.ended() {
			assert.Equal(b, "orders", attributes(span.Attributes)["key.class"], span.Name)
		}
		assert.NotContains(b, o.exported(), "orders:")
		assert.Equal(b, map[string]string{"redlock.held{key.class=orders}": "0"}, o.values("redlock.held"))
		assert.Equal(b, map[string]string{"redlock.waiting{key.class=orders}": "0"}, o.values("redlock.waiting"))
	}, redlockotel.WithKey(keyClass))
}

// WithSpanKey's attribute is on spans alone.
func TestWithSpanKey(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		keyed(b)
		for name, m := range o.instruments() {
			_, points := points(m)
			assert.NotContains(b, attributeKeys(points), "redlock.key", name)
			assert.Equal(b, !strings.HasPrefix(name, "redlock.node."), slices.Contains(attributeKeys(points), "key.class"), name)
		}
		for _, span := range o.ended() {
			assert.Contains(b, attributes(span.Attributes)["redlock.key"], "orders:471", span.Name)
			assert.NotContains(b, attributes(span.Attributes), "key.class", span.Name)
		}
	}, redlockotel.WithKey(keyClass), redlockotel.WithSpanKey(wholeKey))
}

// A measurement leads to the trace in which it was made. That of an operation leads to its span.
func TestExemplars(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		holder := b.NewRedlock(redlock.Config{})
		lock, err := holder.TryAcquire(b.Context(), key, ttl)
		require.NoError(b, err)
		time.AfterFunc(time.Second, func() { assert.NoError(b, lock.Release(b.Context())) })

		ctx, work := o.tracer.Start(b.Context(), "work")
		lock, err = b.Redlock.Acquire(ctx, key, ttl)
		require.NoError(b, err)
		require.NoError(b, lock.Extend(ctx, ttl))
		lock.KeepAlive()
		time.Sleep(ttl / 2)
		require.NoError(b, lock.Release(ctx))
		lock, err = b.Redlock.TryAcquire(ctx, key, ttl)
		require.NoError(b, err)
		for _, m := range b.Masters.All() {
			m.Miniredis().FlushAll()
		}
		require.ErrorIs(b, lock.Extend(ctx, ttl), redlock.ErrNotHeld)
		b.Settle()

		spans := map[trace.SpanID]string{work.SpanContext().SpanID(): "work"}
		for _, s := range o.ended() {
			spans[s.SpanContext.SpanID()] = s.Name
		}
		leads := map[string]map[string]bool{}
		for name, m := range o.instruments() {
			_, points := points(m)
			leads[name] = map[string]bool{}
			for _, p := range points {
				assert.NotEmpty(b, p.exemplars, "%s %v", name, p.attributes.ToSlice())
				for _, to := range p.exemplars {
					assert.Equal(b, work.SpanContext().TraceID(), to.TraceID(), name)
					leads[name][spans[to.SpanID()]] = true
				}
			}
		}
		work.End()
		delete(leads, "redlock.held") // the SDK keeps some exemplars, of beginnings or of ends
		only := func(span string) map[string]bool { return map[string]bool{span: true} }
		assert.Equal(b, map[string]map[string]bool{
			"redlock.acquire.duration":   only("redlock.acquire"),
			"redlock.wait.duration":      only("redlock.acquire"),
			"redlock.waiting":            only("redlock.acquire"),
			"redlock.hold.duration":      only("work"),
			"redlock.lost":               only("work"),
			"redlock.extend.duration":    {"redlock.extend": true, "work": true}, // of a renewal
			"redlock.renewal.left":       only("work"),
			"redlock.release.duration":   only("redlock.release"),
			"redlock.node.votes":         only("work"),
			"redlock.node.vote.duration": only("work"),
		}, leads)
	})
}

// Several Redlocks may share an Observer.
func TestShared(t *testing.T) {
	observed(t, redlock.Config{}, func(o *telemetry, b *virtual.Bed) {
		other := b.NewRedlock(redlock.Config{Observer: o})
		b.Acquire(key, ttl)
		_, err := other.TryAcquire(b.Context(), "another", ttl)
		require.NoError(b, err)
		assert.Equal(b, map[string]string{"redlock.held{}": "2"}, o.values("redlock.held"))
	})
}
