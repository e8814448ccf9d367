package conn

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// A lane keeps a connection to each shard of a Cluster, which it gets from the shard's own
// client. The hooks of that client see every command; the hooks of the ClusterClient itself see
// none. Most hooks only watch. But one that changes keys would miss the keys of locks: this
// client, and a client whose hook does see them, would lock two different keys.

var errKeyHook = errors.New("has a hook of its own that changes a command's key: its hooks do not see the commands " +
	"of locks; add it to the shards' clients with OnNewNode, or use Config.KeyPrefix")

// changesKeys reports whether a hook of the ClusterClient itself changes the key of SET. It
// passes a command to the hooks, the last of which keeps it from being sent.
func changesKeys(client *redis.ClusterClient) bool {
	stop := &stopHook{}
	client.AddHook(stop)
	ctx := context.WithValue(context.Background(), stop, true)
	changed := false
	send := func(run func(cmd redis.Cmder)) {
		const key = "redlock:hooks"
		cmd := newSet()
		cmd.fill(&protocol.Operation{NodeKey: key, Value: "none", TTL: int64(1)}, true, clock.System())
		run(cmd)
		changed = changed || cmd.Args()[1] != any(key)
	}
	send(func(cmd redis.Cmder) { _ = client.Process(ctx, cmd) })
	send(func(cmd redis.Cmder) {
		pipe := client.Pipeline()
		_ = pipe.Process(ctx, cmd)
		_, _ = pipe.Exec(ctx)
	})
	return changed
}

// stopHook stops the commands whose context carries it. go-redis cannot remove a hook.
type stopHook struct{ _ byte } // not of size 0, so that two hooks have different addresses

func (s *stopHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *stopHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ctx.Value(s) != nil {
			return nil
		}
		return next(ctx, cmd)
	}
}

func (s *stopHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if ctx.Value(s) != nil {
			return nil
		}
		return next(ctx, cmds)
	}
}
