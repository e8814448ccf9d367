// Package spy records what a Redlock does: the commands of its clients, and what it logs.
package spy

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Before is a go-redis hook that is called with every command before it is sent. It may
// change the command.
type Before func(redis.Cmder)

// DialHook changes nothing.
func (b Before) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook calls b with a single command.
func (b Before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		b(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook calls b with each command of a pipeline.
func (b Before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			b(cmd)
		}
		return next(ctx, cmds)
	}
}

// After is a go-redis hook that is called with every command once it is answered.
type After func(redis.Cmder)

// DialHook changes nothing.
func (a After) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook calls a with a single command.
func (a After) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer a(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook calls a with each command of a pipeline.
func (a After) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer func() {
			for _, cmd := range cmds {
				a(cmd)
			}
		}()
		return next(ctx, cmds)
	}
}
