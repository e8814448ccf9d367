// Package masters starts the Redis servers of a comparison, puts links in front of them, and
// examines their keys.
package masters

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

// Set is a set of masters, with clients of the benchmark that examine them.
type Set struct {
	servers []*redisserver.Server
	links   []*redisserver.Link
	clients []*redis.Client
}

// Launch starts n masters. The caller must stop them. They always end with this process.
func Launch(n int) (*Set, error) {
	servers, err := redisserver.Launch(n)
	if err != nil {
		return nil, err
	}
	return of(servers), nil
}

// Start starts n masters for a test or benchmark, and stops them when it ends.
func Start(tb redisserver.TB, n int) *Set {
	tb.Helper()
	s := of(redisserver.Start(tb, n))
	tb.Cleanup(s.Close)
	return s
}

func of(servers []*redisserver.Server) *Set {
	s := &Set{servers: servers}
	for _, server := range servers {
		s.clients = append(s.clients, server.Client(func(o *redis.Options) { o.PoolSize = 2 }))
	}
	return s
}

// Close ends the links.
func (s *Set) Close() {
	for _, l := range s.links {
		l.Close()
	}
	s.links = nil
}

// Stop ends the links and the servers.
func (s *Set) Stop() {
	s.Close()
	for _, server := range s.servers {
		server.Stop()
	}
}

// Addrs returns the addresses of the first n masters.
func (s *Set) Addrs(n int) []string {
	addrs := make([]string, n)
	for i := range addrs {
		addrs[i] = s.servers[i].Addr()
	}
	return addrs
}

// Links returns proxies in front of the first n masters, the same at every call.
func (s *Set) Links(n int) ([]*redisserver.Link, error) {
	for len(s.links) < n {
		l, err := redisserver.OpenLink(s.servers[len(s.links)].Addr())
		if err != nil {
			return nil, err
		}
		s.links = append(s.links, l)
	}
	return s.links[:n], nil
}

// Client returns the benchmark's client of one master.
func (s *Set) Client(i int) *redis.Client { return s.clients[i] }

// Size returns the number of masters.
func (s *Set) Size() int { return len(s.servers) }

// Version returns the masters' version of Redis.
func (s *Set) Version(ctx context.Context) (string, error) {
	return s.info(ctx, 0, "server", "redis_version:")
}

// Scripts returns how many script calls all masters have executed.
func (s *Set) Scripts(ctx context.Context) (calls int64, err error) {
	for i := range s.clients {
		n, err := s.info(ctx, i, "commandstats", "cmdstat_evalsha:calls=")
		if err != nil {
			return 0, err
		}
		n, _, _ = strings.Cut(n, ",")
		if n == "" {
			continue // none yet
		}
		c, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			return 0, err
		}
		calls += c
	}
	return calls, nil
}

// info returns the text after prefix in INFO, or "" if there is no such line.
func (s *Set) info(ctx context.Context, i int, section, prefix string) (string, error) {
	text, err := s.clients[i].Info(ctx, section).Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", nil
}

// Keys returns the number of keys on each of the first n masters.
func (s *Set) Keys(ctx context.Context, n int) ([]int64, error) {
	counts := make([]int64, n)
	for i := range counts {
		var err error
		if counts[i], err = s.clients[i].DBSize(ctx).Result(); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// AwaitUptime returns when each of the masters reports at least this uptime.
func (s *Set) AwaitUptime(ctx context.Context, uptime time.Duration) error {
	for i := range s.clients {
		for {
			text, err := s.info(ctx, i, "server", "uptime_in_seconds:")
			if err != nil {
				return err
			}
			seconds, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			if time.Duration(seconds)*time.Second >= uptime {
				break
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// Flush deletes all keys.
func (s *Set) Flush(ctx context.Context) error {
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.FlushAll(ctx).Err())
	}
	return errors.Join(errs...)
}
