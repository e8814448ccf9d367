package subject

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Quiet stops the logging of go-redis, which four of the subjects use, for the whole process.
// With a master that refuses connections, each attempt would log a line.
func Quiet() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
