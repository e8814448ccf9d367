package redlock

import (
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/internal/endpoint"
)

// The clients that Open makes wait for a silent node for twice the NodeTimeout, however
// long that is.
func TestOpenWaitsForTwiceTheNodeTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		0:                     time.Second,
		time.Millisecond:      time.Second,
		time.Second:           2 * time.Second,
		math.MaxInt64 / 2:     math.MaxInt64 - 1,
		math.MaxInt64/2 + 1:   math.MaxInt64,
		math.MaxInt64 / 4 * 3: math.MaxInt64,
		math.MaxInt64:         math.MaxInt64,
	} {
		cfg := Config{NodeTimeout: timeout}
		assert.Equal(t, want, cfg.withDefaults().patience(), timeout)
		opt, err := endpoint.Options("redis://host", cfg.withDefaults().patience())
		assert.NoError(t, err)
		client := redis.NewClient(opt)
		assert.Equal(t, want, client.Options().ReadTimeout)
		assert.GreaterOrEqual(t, client.Options().PoolTimeout, want, "go-redis' default is a second more, and overflows")
		assert.NoError(t, client.Close())
	}
}
