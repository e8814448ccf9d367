package subject

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Quiet makes go-redis, which four of the subjects use, log nothing, for the
// whole process: beside a master that refuses, each attempt would be a line.
func Quiet() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
