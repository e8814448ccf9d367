// Package endpoint turns a URL into the options of a go-redis client whose connections suit
// a lock. Other programs use it to see a master as a lock sees it.
package endpoint

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/clock"
)

// Options returns the options of a client for a redis://, rediss:// or unix:// URL. The
// client heeds deadlines, sends no command twice, dials once at a time, and does not connect
// before it is used. It speaks RESP2, and gives up a silent server after patience, unless
// the URL's protocol, dial_timeout and read_timeout say otherwise.
//
// An error continues a sentence that begins with the URL's name ("has no socket path"). It
// quotes no part of the URL, which may contain a password.
func Options(url string, patience time.Duration) (*redis.Options, error) {
	opt, err := parse(url)
	if err != nil {
		return nil, err
	}
	opt.ContextTimeoutEnabled = true
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.MinIdleConns = 0
	// CLIENT SETINFO, which puts the library's name into CLIENT LIST, costs a round trip at
	// each connect, and is unknown before Redis 7.2.
	opt.DisableIdentity = true
	if opt.Protocol == 0 {
		// With RESP3 go-redis looks for push messages before each command, which costs a
		// system call. No server sends us any.
		opt.Protocol = 2
	}
	if opt.DialTimeout <= 0 {
		opt.DialTimeout = patience
	}
	if opt.ReadTimeout == 0 {
		opt.ReadTimeout = patience
	}
	if opt.PoolTimeout == 0 && opt.ReadTimeout > 0 {
		// This is go-redis' own default, without its overflow.
		opt.PoolTimeout = clock.Sum(opt.ReadTimeout, time.Second)
	}
	// Maintenance notifications cost a round trip at each connect, and only Redis Enterprise
	// knows them.
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.Dialer = Quietly(redis.NewDialer(opt))
	return opt, nil
}
