package nodes

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/slot"
)

// trial is a command that changes nothing, and needs a right that locks need.
type trial []any

func (q trial) name() string { return q[0].(string) }

// lockTrials returns a trial for each right without which nobody can lock. No client has the key.
func lockTrials(key string) []trial {
	flag := slot.Sibling(slot.FlagPrefix, key)
	return []trial{
		{"set", key, "", "px", 1, "xx"}, // sets nothing, as the key does not exist
		{"get", key},
		{"del", key, flag},
		{"pttl", key},
		{"pexpire", key, 1},
		{"evalsha", strings.Repeat("0", 40), 0}, // there is no such script
		{"eval", "return 0", 0},
	}
}

// waitTrials returns a trial for each further right without which a wait polls.
func waitTrials(key, channel string) []trial {
	queue, flag := slot.Sibling(slot.QueuePrefix, key), slot.Sibling(slot.FlagPrefix, key)
	return []trial{
		{"ping"},
		{"time"},
		{"exists", flag},
		{"zadd", queue, "xx", 0, "nobody"},
		{"zcount", queue, 0, 0},
		{"zrange", queue, 0, 0},
		{"zrangebyscore", queue, 0, 0},
		{"zrem", queue, "nobody"},
		{"zscore", queue, "nobody"},
		{"publish", channel, ""},
	}
}

// readRights finds the commands of a lock and of a wait that are refused. prefix is the prefix of
// the keys.
func (a *asking) readRights(client *redis.Client, prefix string) {
	id, err := uuid.NewRandom()
	if err != nil || a.err != nil {
		return
	}
	key, channel := prefix+probe+":"+id.String(), slot.WakePrefix+id.String()
	a.lacksToLock = a.refusals(lockTrials(key))
	a.lacksToWait = a.refusals(waitTrials(key, channel))
	if a.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(a.ctx, a.patience)
	defer cancel()
	subscription := client.Subscribe(ctx, channel)
	defer func() { _ = subscription.Close() }()
	if _, err := subscription.ReceiveTimeout(ctx, a.patience); forbidden(err) {
		a.lacksToWait = append(a.lacksToWait, "subscribe")
	}
}

// refusals returns the commands that the user may not run, or not on these keys.
func (a *asking) refusals(trials []trial) (names []string) {
	var replies []*redis.Cmd
	_ = a.do(func(ctx context.Context) error {
		_, err := a.conn.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, q := range trials {
				replies = append(replies, pipe.Do(ctx, q...))
			}
			return nil
		})
		return err
	})
	for i, reply := range replies {
		if forbidden(reply.Err()) {
			names = append(names, trials[i].name())
		}
	}
	return names
}

// forbidden reports whether a server says that the user has no right to a command, or that
// there is no such command.
func forbidden(err error) bool {
	return says(err, "NOPERM") || says(err, "ERR unknown command")
}
