package redlocktest

import (
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// TB is the part of a test that this package needs; *testing.T, *testing.B and *testing.F have
// it. It keeps package testing out of programs that use [New].
type TB = inmemory.TB

// Masters is a set of independent in-memory masters. Its methods are safe for concurrent use.
type Masters inmemory.Masters

func (ms *Masters) in() *inmemory.Masters { return (*inmemory.Masters)(ms) }

// Start starts n empty masters on loopback ports and closes them when the test ends. If that
// fails, the test fails and nothing is left running.
func Start(tb TB, n int) *Masters { return (*Masters)(inmemory.Start(tb, n)) }

// StartVirtual starts n empty masters without sockets, for use inside a [testing/synctest]
// bubble. Call it in the bubble, with the bubble's own tb, so that the masters use its clock
// and are closed before it ends.
//
// There are no URLs; use [Masters.Clients] or [Master.Client]. go-redis notices a cut pooled
// connection only when it next uses it, because its check in advance needs a socket.
//
// Under the race detector, keep a bubble to a few hundred goroutines; a connection takes two.
// With many more, Go 1.26 now and then ends the process with "ThreadSanitizer: CHECK failed"
// (golang/go#78156).
func StartVirtual(tb TB, n int) *Masters { return (*Masters)(inmemory.StartVirtual(tb, n)) }

// New starts n empty masters on loopback ports, outside of any test. The caller must close
// them. After an error nothing is left running.
func New(n int) (*Masters, error) {
	ms, err := inmemory.New(n)
	return (*Masters)(ms), err
}

// Len returns the number of masters, dead ones included.
func (ms *Masters) Len() int { return ms.in().Len() }

// Master returns the i-th master, counted from 0. It panics if there is none.
func (ms *Masters) Master(i int) *Master { return (*Master)(ms.in().Master(i)) }

// All returns the masters in order.
func (ms *Masters) All() []*Master {
	all := make([]*Master, ms.Len())
	for i := range all {
		all[i] = ms.Master(i)
	}
	return all
}

// URLs returns each master's URL in order, or nil for masters of [StartVirtual].
func (ms *Masters) URLs() []string { return ms.in().URLs() }

// Clients returns one new client for each master in order, as [Master.Client] makes it without
// changes. Close closes them.
func (ms *Masters) Clients() []redis.UniversalClient { return ms.in().Clients() }

// Kill kills the masters with these indices, as [Master.Kill] does.
func (ms *Masters) Kill(which ...int) { ms.in().Kill(which...) }

// Restart restarts the masters with these indices, as [Master.Restart] does. A master that
// cannot come back stays dead; the others still come back.
func (ms *Masters) Restart(which ...int) error { return ms.in().Restart(which...) }

// Close closes every client that this package made, then every master, and returns when none
// of their goroutines is left. Everything on its way to a master is lost. Further calls do
// nothing.
func (ms *Masters) Close() error { return ms.in().Close() }
