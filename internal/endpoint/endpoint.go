// Package endpoint makes the options of a go-redis client of a URL: what a lock
// needs of its connections, and what anybody else needs who wants to see a master as
// the lock sees it.
package endpoint

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/clock"
)

// Options are those of a client for redis://, rediss:// or unix://. It heeds
// deadlines, sends no command twice, dials once at a time, connects to nobody before
// it is used, speaks RESP2 unless the URL's protocol says otherwise, and gives a
// silent server up after patience, unless its dial_timeout and read_timeout do.
//
// An error says what the URL is or has, for behind its name ("has no socket path"). It
// quotes no part of the URL, in which there may be a password.
func Options(url string, patience time.Duration) (*redis.Options, error) {
	opt, err := parse(url)
	if err != nil {
		return nil, err
	}
	opt.ContextTimeoutEnabled = true
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.MinIdleConns = 0
	// CLIENT SETINFO, by which CLIENT LIST tells the library's name, is a round trip at
	// each connect, and unknown before Redis 7.2.
	opt.DisableIdentity = true
	if opt.Protocol == 0 {
		// With RESP3 go-redis looks for push messages, which nobody sends us,
		// before each command: one more system call.
		opt.Protocol = 2
	}
	if opt.DialTimeout <= 0 {
		opt.DialTimeout = patience
	}
	if opt.ReadTimeout == 0 {
		opt.ReadTimeout = patience
	}
	if opt.PoolTimeout == 0 && opt.ReadTimeout > 0 {
		// This is go-redis' own default, but for its overflow.
		opt.PoolTimeout = clock.Sum(opt.ReadTimeout, time.Second)
	}
	// Saves a round trip at each connect; only Redis Enterprise knows it.
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.Dialer = Quietly(redis.NewDialer(opt))
	return opt, nil
}
