// Package redisserver starts real redis-server processes for tests and benchmarks: independent
// masters, a Redis Cluster, and a master with a replica under a Sentinel.
//
// Every server is a process on 127.0.0.1, without persistence, with its own temporary
// directory and a port below the range of the system's outgoing connections. The redis-server
// in PATH is used. Without one, starting fails with an error that says what to install. Only
// -short skips a test.
//
// Servers end with the process that started them, even if that is killed. A kill leaves only
// their temporary directories behind.
//
// A [Link] is a proxy in front of a server that stalls, delays or loses traffic.
package redisserver

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TB is the part of testing.TB that this package needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Skip(args ...any)
}

// errMissing is one line, so that the reader of a failed test needs no more.
var errMissing = errors.New("redisserver: no redis-server in PATH; install it with: apt-get install redis-server (Debian, Ubuntu) or brew install redis (macOS)")

func binary() (string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", errMissing
	}
	return path, nil
}

// Start starts n independent masters and stops them when the test ends. If one of them does
// not start, it stops the others and fails the test.
func Start(tb TB, n int, opts ...Option) []*Server {
	tb.Helper()
	return start(tb, func() ([]*Server, error) { return Launch(n, opts...) }, stopAll)
}

// start launches something for a test, and stops it when the test ends. With -short it skips
// the test.
func start[T any](tb TB, launch func() (T, error), stop func(T)) (started T) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short leaves out the tests on real redis-server processes")
	}
	started, err := launch()
	if err != nil {
		tb.Fatalf("%v", err)
		return started
	}
	tb.Cleanup(func() { stop(started) })
	return started
}

// Launch starts n independent masters, which answer PING when it returns. The caller must stop
// each of them. After an error no process and no directory is left.
func Launch(n int, opts ...Option) ([]*Server, error) {
	settings := newSettings(opts)
	if settings.tls {
		authority, err := newAuthority()
		if err != nil {
			return nil, err
		}
		settings.authority = authority
	}
	return launch(n, settings)
}

func launch(n int, settings settings) ([]*Server, error) {
	if n < 1 {
		return nil, fmt.Errorf("redisserver: n = %d servers, need at least 1", n)
	}
	servers := make([]*Server, n)
	var g errgroup.Group
	for i := range servers {
		g.Go(func() (err error) {
			servers[i], err = newServer(settings)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		stopAll(servers)
		return nil, err
	}
	return servers, nil
}

func stopAll(servers []*Server) {
	var g errgroup.Group
	for _, s := range servers {
		if s != nil {
			g.Go(func() error { s.Stop(); return nil })
		}
	}
	_ = g.Wait()
}
