package redlock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/endpoint"
	"github.com/quorumlock/redlock/redlock/internal/conn"
)

// Open makes a Redlock from URLs, one for each master. It makes the clients, which Close closes:
//
//	redis://user:password@host:port/db     plain TCP
//	rediss://user:password@host:port/db    TLS
//	unix://user:password@/path/to/socket?db=n
//
// For TLS, cacert=FILE names the authorities that may sign the server's certificate, in place of
// the system's. cert=FILE and key=FILE name the client's own certificate, which is read again for
// each connection.
//
// User, password, port (6379) and db (0) may be left out. Options in the query are those of
// redis.ParseURL (https://pkg.go.dev/github.com/redis/go-redis/v9#ParseURL). The clients suit a
// lock: they heed deadlines, do not send a command again, do not repeat a failed dial, and speak
// RESP2 unless the option protocol says otherwise. They give up a silent node after a second, or
// after twice NodeTimeout if that is longer, unless dial_timeout and read_timeout say otherwise. A
// read_timeout of -1, which means none, is an error.
//
// For a Sentinel-managed master or a Cluster, make the client yourself and use [New].
//
// Open contacts no node. Its errors are those of New. They name a URL by its place in the list and
// never quote it, because it may contain a password. Two URLs with one address are
// ErrDuplicateNode, whatever their databases: one server must not have two votes.
func Open(urls []string, cfg Config) (*Redlock, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if len(urls) == 0 {
		return nil, errors.New("redlock: urls is empty")
	}
	patience := cfg.withDefaults().patience()
	options := make([]*redis.Options, len(urls))
	seen := map[string]int{}
	for i, url := range urls {
		opt, err := endpoint.Options(url, patience)
		if err != nil {
			return nil, fmt.Errorf("redlock: urls[%d] %w", i, err)
		}
		if opt.ReadTimeout <= 0 {
			return nil, fmt.Errorf("redlock: urls[%d] %w", i, conn.ErrEndless)
		}
		addr := opt.Network + " " + opt.Addr
		if opt.Network != "unix" { // in a path, case matters
			addr = strings.ToLower(addr)
		}
		if first, twice := seen[addr]; twice {
			return nil, fmt.Errorf("%w: urls[%d] and urls[%d] are the same address", ErrDuplicateNode, first, i)
		}
		seen[addr] = i
		options[i] = opt
	}

	clients := make([]redis.UniversalClient, len(options))
	for i, opt := range options {
		clients[i] = redis.NewClient(opt)
	}
	r, err := New(clients, cfg)
	if err != nil {
		for _, c := range clients {
			err = errors.Join(err, c.Close())
		}
		return nil, err
	}
	for _, c := range clients {
		r.closers = append(r.closers, c.Close)
	}
	return r, nil
}

// patience returns how long a client of Open waits for a silent node: a second, or twice
// NodeTimeout if that is longer.
func (c Config) patience() time.Duration {
	return max(time.Second, clock.Sum(c.NodeTimeout, c.NodeTimeout))
}
