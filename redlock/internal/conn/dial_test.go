package conn

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/internal/endpoint"
)

// go-redis takes a quiet dial for one that worked. The library must not: a lane that does
// not know that its node refuses connections dials as fast as its callers ask.
func TestDialThatFailsQuietlyIsReportedAsFailed(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	options := &redis.Options{MaxRetries: -1, DialerRetries: 1}
	up := false
	options.Dialer = endpoint.Quietly(func(context.Context, string, string) (net.Conn, error) {
		if up {
			ours, theirs := net.Pipe()
			_ = theirs.Close()
			return ours, nil
		}
		return nil, refused
	})
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	var reported []error
	stop := watchDials(client, func(err error) { reported = append(reported, err) })
	defer stop()

	assert.ErrorIs(t, client.Ping(context.Background()).Err(), refused)
	up = true
	assert.Error(t, client.Ping(context.Background()).Err(), "the other end is closed")
	if assert.Len(t, reported, 2) {
		assert.ErrorIs(t, reported[0], refused)
		assert.NoError(t, reported[1])
	}
}
