// Package inmemory runs in-memory Redis masters whose links and identities fail on request. It
// is the implementation of package redlocktest, whose documentation applies, and has more
// faults for this project's own tests and its fault lab.
package inmemory

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// TB is the part of a test that this package needs; *testing.T, *testing.B and *testing.F have
// it. It keeps package testing out of programs that use [New].
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Masters is a set of independent in-memory masters. Its methods are safe for concurrent use.
type Masters struct {
	all     []*Master
	virtual bool
}

// Start starts n empty masters on loopback ports and closes them when the test ends.
func Start(tb TB, n int) *Masters {
	tb.Helper()
	return start(tb, n, false)
}

// StartVirtual starts n empty masters without sockets, for use inside a [testing/synctest]
// bubble.
func StartVirtual(tb TB, n int) *Masters {
	tb.Helper()
	return start(tb, n, true)
}

func start(tb TB, n int, virtual bool) *Masters {
	tb.Helper()
	ms, err := newMasters(n, virtual)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil // a caller's own tb may return from Fatalf
	}
	tb.Cleanup(func() {
		if err := ms.Close(); err != nil {
			tb.Fatalf("%v", err)
		}
	})
	return ms
}

// New starts n empty masters on loopback ports, outside of any test.
func New(n int) (*Masters, error) { return newMasters(n, false) }

func newMasters(n int, virtual bool) (*Masters, error) {
	if n < 1 {
		return nil, fmt.Errorf("redlocktest: n is %d, want at least 1", n)
	}
	ms := &Masters{virtual: virtual}
	for i := range n {
		m, err := newMaster(i, virtual)
		if err != nil {
			return nil, errors.Join(err, ms.Close())
		}
		ms.all = append(ms.all, m)
	}
	return ms, nil
}

// Len returns the number of masters, dead ones included.
func (ms *Masters) Len() int { return len(ms.all) }

// Master returns the i-th master, counted from 0.
func (ms *Masters) Master(i int) *Master { return ms.all[i] }

// All returns the masters in order.
func (ms *Masters) All() []*Master { return append([]*Master(nil), ms.all...) }

// URLs returns each master's URL in order, or nil for masters of [StartVirtual].
func (ms *Masters) URLs() []string {
	if ms.virtual {
		return nil
	}
	urls := make([]string, len(ms.all))
	for i, m := range ms.all {
		urls[i] = m.URL()
	}
	return urls
}

// Clients returns one new client for each master in order, as [Master.Client] makes it without
// changes.
func (ms *Masters) Clients() []redis.UniversalClient {
	clients := make([]redis.UniversalClient, len(ms.all))
	for i, m := range ms.all {
		clients[i] = m.Client()
	}
	return clients
}

// Kill kills the masters with these indices, as [Master.Kill] does.
func (ms *Masters) Kill(which ...int) {
	for _, i := range which {
		ms.all[i].Kill()
	}
}

// Restart restarts the masters with these indices, as [Master.Restart] does.
func (ms *Masters) Restart(which ...int) error {
	var errs []error
	for _, i := range which {
		errs = append(errs, ms.all[i].Restart())
	}
	return errors.Join(errs...)
}

// Close closes every client that this package made, then every master, and returns when none
// of their goroutines is left.
func (ms *Masters) Close() error {
	var errs []error
	for _, m := range ms.all {
		errs = append(errs, m.close())
	}
	if ms.virtual {
		// A closed client dials a dead master a few times more, and a bubble must not end
		// before its goroutines.
		time.Sleep(dialling)
	}
	return errors.Join(errs...)
}

// dialling is longer than a default go-redis client keeps dialling: five times with pauses of
// 100 ms, and once a second after many failed dials. In virtual time it costs nothing.
const dialling = 5 * time.Second
