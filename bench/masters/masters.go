// Package masters starts the Redis servers of a comparison, puts links in front
// of them, and looks at what is on them.
package masters

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/redisserver"
)

// Set is some masters, and the bench's own clients that look at them.
type Set struct {
	servers []*redisserver.Server
	links   []*redisserver.Link
	clients []*redis.Client
}

// Launch starts n masters. The caller stops them. They end with this process in
// any case.
func Launch(n int) (*Set, error) {
	servers, err := redisserver.Launch(n)
	if err != nil {
		return nil, err
	}
	return Of(servers), nil
}

// Of makes a Set of servers that somebody else stops, after the Set's Close.
func Of(servers []*redisserver.Server) *Set {
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

// Addrs are the addresses of the first n masters.
func (s *Set) Addrs(n int) []string {
	addrs := make([]string, n)
	for i := range addrs {
		addrs[i] = s.servers[i].Addr()
	}
	return addrs
}

// Links are proxies in front of the first n masters, the same at every call.
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

// Client looks at one master.
func (s *Set) Client(i int) *redis.Client { return s.clients[i] }

// Size is the number of masters.
func (s *Set) Size() int { return len(s.servers) }

// Version is the masters' own.
func (s *Set) Version(ctx context.Context) (string, error) {
	return s.info(ctx, 0, "server", "redis_version:")
}

// Scripts is how many calls of scripts all masters have had.
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

// info is what follows prefix in INFO; empty if there is no such line.
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

// Keys is the number of keys on each of the first n masters.
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

// AwaitUptime returns when each of the masters has been up for so long, by what it
// says itself.
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
