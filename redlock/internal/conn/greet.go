package conn

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// greeting returns the command that a lane sends before a batch if it is not sure of the
// connection. Nothing of the batch is sent before the reply, so a greeting that fails may be
// repeated on another connection. It is HELLO without arguments, which changes nothing and
// which every user may send. Any reply will do, even an error.
func greeting() redis.Cmder { return newQuestion(nil, "hello") }

// idleTooLong is how long a lane may rest before it no longer trusts the connections of the
// pool. Load balancers and firewalls drop connections that were idle for half a minute or more,
// most without telling either end.
const idleTooLong = 10 * time.Second

// negotiates reports whether the client's connections negotiate maintenance notifications. If a
// server refuses them, go-redis writes to the client's options, under a lock that each Conn has
// for itself. So the options are read from a copy, which WithTimeout makes under the client's
// own lock.
func negotiates(client *redis.Client) bool {
	opt := Beside(client).Options()
	m := opt.MaintNotificationsConfig
	return opt.Protocol == 3 && m != nil && m.Mode != maintnotifications.ModeDisabled
}

// greet tests the connection before a batch, if there is reason to. After an error nothing of
// the batch was sent.
func (p *pinned) greet(ctx context.Context) error {
	if p.panicked {
		if err := p.tryApart(ctx); unanswered(err) && !neverSent(err) {
			return err
		}
		p.panicked = false
	}
	if p.negotiate {
		// The client itself makes the first connection, and writes to its options under
		// its own lock. A Conn that connects later finds nothing left to write.
		if err := p.client.Process(ctx, greeting()); unanswered(err) {
			return err
		}
		p.negotiate = false
	}
	if p.mayBeDropped {
		p.mayBeDropped = false
		return p.revive(ctx)
	}
	return nil
}

// revive finds a connection that answers, or returns the error of the last that did not. The
// pool may have several dead ones.
func (p *pinned) revive(ctx context.Context) error {
	clk := p.check.clock
	began := clk.Now()
	first, cancel := context.WithTimeout(ctx, p.patience/2) // for clients that heed deadlines
	err := p.conn.Process(first, greeting())
	cancel()
	for tries := p.client.PoolStats().IdleConns + 1; tries > 0; tries-- {
		if !unanswered(err) || neverSent(err) || clk.Now().Sub(began) >= p.patience {
			break
		}
		p.rest()
		p.take()
		err = p.conn.Process(ctx, greeting())
	}
	if unanswered(err) {
		return err
	}
	return nil
}

// tryApart greets the server on a connection of a client of its own. When go-redis panics on a
// garbled handshake, the client's pool loses a connection for good. The application's client
// must not lose one after the other.
func (p *pinned) tryApart(ctx context.Context) error {
	opt := *Beside(p.client).Options()
	opt.PoolSize, opt.MinIdleConns, opt.PipelinePoolSize = 1, 0, -1
	opt.MaxRetries, opt.DialerRetries = -1, 1
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.ClientSideCache, opt.ClientSideCacheConfig = nil, nil
	client := redis.NewClient(&opt)
	defer func() { _ = client.Close() }()
	return client.Process(ctx, greeting())
}

func unanswered(err error) bool { return err != nil && !errs.Answered(err) }
