package redlock

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open makes a Redlock of URLs, one for each master, with clients of its own
// that Close closes:
//
//	redis://user:password@host:port/db     plain TCP
//	rediss://user:password@host:port/db    TLS
//	unix://user:password@/path/to/socket?db=n
//
// User, password, port (6379) and db (0) may be left out. Options in the query
// are those of redis.ParseURL (https://pkg.go.dev/github.com/redis/go-redis/v9#ParseURL).
// The clients have what a lock needs: they heed deadlines, do not send a command
// again, dial once at a time, speak RESP2 unless protocol says otherwise, and give a
// silent node up after a second (or twice a longer NodeTimeout), unless dial_timeout
// and read_timeout do.
//
// For a Sentinel-managed master or a Cluster make the client yourself and use
// [New].
//
// Open contacts nobody. Its errors are those of New, and name the URL by its
// place in the list; they never quote it, as it may hold a password. Two URLs
// of one address are ErrDuplicateNode, whatever their databases: one server
// must not have two votes.
func Open(urls []string, cfg Config) (*Redlock, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if len(urls) == 0 {
		return nil, errors.New("redlock: urls is empty")
	}
	options := make([]*redis.Options, len(urls))
	seen := map[string]int{}
	for i, raw := range urls {
		opt, err := parseURL(raw)
		if err != nil {
			return nil, fmt.Errorf("redlock: urls[%d] %w", i, err)
		}
		place := opt.Network + " " + opt.Addr
		if opt.Network != "unix" { // where case distinguishes files
			place = strings.ToLower(place)
		}
		if first, twice := seen[place]; twice {
			return nil, fmt.Errorf("%w: urls[%d] and urls[%d] are the same address", ErrDuplicateNode, first, i)
		}
		seen[place] = i
		options[i] = opt
	}

	clients := make([]redis.UniversalClient, len(options))
	for i, opt := range options {
		opt.ContextTimeoutEnabled = true
		opt.MaxRetries = -1
		opt.DialerRetries = 1
		opt.MinIdleConns = 0 // a lane has its own; and Open contacts nobody
		if opt.Protocol == 0 {
			// With RESP3 go-redis looks for push messages, which nobody sends us,
			// before each command: one more system call.
			opt.Protocol = 2
		}
		// A silent node is given up after a second, or twice a NodeTimeout that
		// is longer than half of that.
		patience := max(time.Second, 2*cfg.withDefaults().NodeTimeout)
		if patience < 0 {
			patience = math.MaxInt64
		}
		if opt.DialTimeout <= 0 {
			opt.DialTimeout = patience
		}
		if opt.ReadTimeout == 0 {
			opt.ReadTimeout = patience
		}
		// Saves a round trip at each connect; only Redis Enterprise knows it.
		opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		opt.Dialer = quietly(redis.NewDialer(opt))
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
		r.release = append(r.release, c.Close)
	}
	return r, nil
}

// maxPool bounds a URL's pool_size: go-redis panics on a larger one, or on the
// memory for it. A lane needs one connection.
const maxPool = 1 << 16

// parseURL never passes on what a parser says: it may quote any part of the URL,
// and a password with a character that should have been encoded can be in any.
func parseURL(raw string) (*redis.Options, error) {
	if raw == "" {
		return nil, errors.New("is empty")
	}
	scheme, _, found := strings.Cut(raw, "://")
	if !found || (scheme != "redis" && scheme != "rediss" && scheme != "unix") {
		return nil, errors.New("does not begin with redis://, rediss:// or unix://")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("is not a URL (are special characters of the password percent-encoded?)")
	}
	// What an unencoded character cuts off would be dialled, and shown, as a
	// host or a path.
	if strings.Contains(raw, "#") {
		return nil, errors.New("contains a #; in a password it is %23")
	}
	if scheme == "unix" && (u.Host != "" || strings.Contains(u.Path, "@")) {
		return nil, errors.New("has no absolute socket path after the user (in a password / is %2F and @ is %40)")
	}
	if scheme == "unix" && u.Path == "" {
		return nil, errors.New("has no socket path")
	}
	if port, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || port < 1 || port > 65535) {
		return nil, errors.New("has a port that is not in [1, 65535]")
	}
	opt, err := redis.ParseURL(raw)
	if err != nil {
		return nil, errors.New("has a path or query that is not understood (want /db and the options of redis.ParseURL)")
	}
	if opt.DB < 0 {
		return nil, errors.New("has a negative database number")
	}
	if opt.PoolSize < 0 || opt.PoolSize > maxPool {
		return nil, fmt.Errorf("has a pool_size that is not in [0, %d]", maxPool)
	}
	return opt, nil
}
