package fence

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/slot"
)

// RedisGuard writes keys of a Redis and refuses stale tokens. Beside each key the Redis keeps
// the highest token that the key was written under. RedisGuard refuses only writes through a
// RedisGuard: a plain SET is not checked. It is safe for concurrent use.
//
// The token of a key is in a key of its own, in the same slot of a Cluster:
// redlock:guard:{key}, or redlock:guard::key for a key with a hash tag, or
// redlock:guard:{tag}key for a key with a closing brace and no hash tag. It has no expiry,
// and Del leaves it, as a key without its token would accept an old holder's write. The token
// is lost if somebody deletes it, if the server evicts it because memory is short and
// maxmemory-policy is one of allkeys, or if the server loses its memory. A failover to a
// replica can lose the latest writes of keys and tokens alike.
type RedisGuard struct {
	client redis.UniversalClient
}

// writeSHA1 is the hash of write.lua. It is a constant, which a test checks, because computing
// SHA-1 at run time panics in builds that enforce FIPS 140 (redsync#194).
const writeSHA1 = "8e9946ad38a6d25e7c0f36eb68f3719456386de2"

//go:embed write.lua
var writeText string

// NewRedis makes a RedisGuard from a *redis.Client or a *redis.ClusterClient, which the caller
// keeps and closes. It contacts no server. It refuses a Ring: when a shard is down, a Ring
// looks for a key, and its token, on another.
func NewRedis(client redis.UniversalClient) (*RedisGuard, error) {
	switch client.(type) {
	case *redis.Client, *redis.ClusterClient:
		if !made(client) {
			return nil, fmt.Errorf("fence: client is a %T that is nil or was not made by its constructor", client)
		}
		return &RedisGuard{client}, nil
	case nil:
		return nil, errors.New("fence: client is nil")
	default:
		return nil, fmt.Errorf("fence: client is a %T: want a *redis.Client or a *redis.ClusterClient", client)
	}
}

// made reports whether the client was made by its constructor. A client without options
// panics here, and not in a write.
func made(client redis.UniversalClient) (ok bool) {
	defer func() { ok = recover() == nil }()
	switch c := client.(type) {
	case *redis.Client:
		_ = c.Options().Addr
	case *redis.ClusterClient:
		_ = c.Options().Addrs
	}
	return
}

// Set sets key to value, and makes the key remember this token, if the key has seen no higher
// token. It does both or neither. The same token passes as often as its holder likes. A ttl of
// 0 means no expiry. Any other ttl is cut to whole milliseconds, and is at least one.
//
// The error is a *[StaleError], which is [ErrStaleToken], if the key has seen a higher token;
// nothing was written. An error that names an argument reports a key that is empty or a
// guard's own, a negative or too short ttl, or a token not from 1 to 2^53-1; nothing was sent.
// Any other error is the server's or the client's, wrapped. The write may then have happened,
// or may still happen if its bytes are on their way, but never after the write of a higher
// token.
func (g *RedisGuard) Set(ctx context.Context, key, value string, ttl time.Duration, token int64) error {
	if ttl < 0 || ttl > 0 && ttl < time.Millisecond {
		return fmt.Errorf("fence: ttl %v is neither 0 nor at least 1ms", ttl)
	}
	return g.write(ctx, "set", key, token, value, ttl.Milliseconds())
}

// Del deletes key if it has seen no higher token. The token is remembered, though the key is
// gone. It is no error if the key does not exist. The errors are those of [RedisGuard.Set].
func (g *RedisGuard) Del(ctx context.Context, key string, token int64) error {
	return g.write(ctx, "delete", key, token)
}

func (g *RedisGuard) write(ctx context.Context, op, key string, token int64, what ...any) error {
	switch {
	case g.client == nil:
		return errors.New("fence: a RedisGuard is made by NewRedis")
	case key == "":
		return errors.New("fence: key is empty")
	case strings.HasPrefix(key, slot.GuardPrefix):
		return fmt.Errorf("fence: key %q is a guard's own", short(key))
	}
	if err := checkToken(token); err != nil {
		return err
	}
	reply, err := g.run(ctx, []string{key, slot.Sibling(slot.GuardPrefix, key)}, append([]any{token}, what...))
	if err != nil {
		return failed(ctx, op, key, scrub(err))
	}
	if reply == "OK" {
		return nil
	}
	highest, err := strconv.ParseInt(reply, 10, 64)
	if err != nil || highest <= token {
		return failed(ctx, op, key, errors.New("the reply is none of our script's"))
	}
	return &StaleError{Resource: key, Token: token, Highest: highest}
}

// run sends the script by its hash, and as a text to a server that does not have it. If a reply
// is lost, go-redis may send the script again. Repeating the write under its token has the
// effect of one write, and after a higher token the repetition is refused.
func (g *RedisGuard) run(ctx context.Context, keys []string, args []any) (string, error) {
	reply, err := g.client.EvalSha(ctx, writeSHA1, keys, args...).Text()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = g.client.Eval(ctx, writeText, keys, args...).Text()
	}
	return reply, err
}

// scrub removes the arguments, the value among them, that a server quotes when it does not
// know a command.
func scrub(err error) error {
	if said, _, quotes := strings.Cut(err.Error(), "with args"); quotes {
		return errors.New(strings.TrimRight(said, " ,"))
	}
	return err
}
