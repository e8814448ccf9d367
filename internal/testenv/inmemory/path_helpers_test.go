package inmemory_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// inTime makes a client give up after a second, without a retry.
func inTime(o *redis.Options) {
	once(o)
	o.DialTimeout, o.ReadTimeout = time.Second, time.Second
}

// connected returns a client on the path that has a connection.
func connected(t *testing.T, p *inmemory.Path, configure ...func(*redis.Options)) *redis.Client {
	t.Helper()
	c := p.Client(append([]func(*redis.Options){once}, configure...)...)
	require.NoError(t, c.Ping(t.Context()).Err())
	return c
}

// onPath runs f in virtual time, with a master, a path to it and a client that has a connection on
// the path.
func onPath(t *testing.T, f func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client)) {
	t.Helper()
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		f(t, m, p, connected(t, p))
	})
}

// background starts f. It returns a function that waits for f and returns its duration and
// error.
func background(f func() error) func() (time.Duration, error) {
	begin := time.Now()
	done := make(chan error, 1)
	var took time.Duration
	go func() {
		err := f()
		took = time.Since(begin)
		done <- err
	}()
	return func() (time.Duration, error) { err := <-done; return took, err }
}

// shaped makes a path delay requests and replies, and lose nothing.
func shaped(p *inmemory.Path, request, reply time.Duration) {
	p.Shape(func(d faultlink.Direction) (time.Duration, bool) {
		if d == faultlink.ToServer {
			return request, false
		}
		return reply, false
	})
}

// losing makes a path lose everything in one direction.
func losing(p *inmemory.Path, lost faultlink.Direction) {
	p.Shape(func(d faultlink.Direction) (time.Duration, bool) { return 0, d == lost })
}
