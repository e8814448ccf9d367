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

// RedisGuard writes keys of a Redis that remembers, beside each of them, the highest
// token that it has been written under. It keeps out those who write through a
// RedisGuard; a plain SET asks nobody. It is safe for concurrent use.
//
// The token of a key is in a key of its own, in the same slot of a Cluster:
// redlock:guard:{key}, or redlock:guard::key for a key with a hash tag, or
// redlock:guard:{tag}key for one with a closing brace and no hash tag. It has no
// expiry, and Del leaves it: a key whose token is forgotten takes an old holder's
// write. So it lives as long as nobody deletes it, memory is not short under a
// maxmemory-policy of allkeys, and the server keeps its memory. What a failover to a
// replica loses is lost for keys and tokens alike.
type RedisGuard struct {
	client redis.UniversalClient
}

const guardPrefix = "redlock:guard:"

// The hash is a constant, checked by a test: computing SHA-1 at run time panics in
// builds that enforce FIPS 140 (redsync#194).
const writeSHA1 = "8e9946ad38a6d25e7c0f36eb68f3719456386de2"

//go:embed write.lua
var writeText string

// NewRedis makes a RedisGuard of a *redis.Client or a *redis.ClusterClient, which the
// caller keeps and closes. It contacts nobody. A Ring is refused: when a shard is
// down it looks for a key, and its token, on another.
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

// made tries the client: one without options panics here, and not in a write.
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

// Set sets key to value if the key has seen no higher token, and makes it remember
// this one; both or neither. The same token passes as often as its holder likes. A
// ttl of 0 is none; any other is cut to whole milliseconds, of which it needs one.
//
// The error is a *[StaleError], which is [ErrStaleToken], if the key has seen a
// higher token; nothing was written. A key that is empty or a guard's own, a negative
// or too short ttl and a token not from 1 to 2^53-1 are errors that name the argument;
// nothing was sent. After any other error, the server's or the client's, wrapped, the
// write may have been done, or be done yet if its bytes are still on their way; in
// either case not after the write of a higher token.
func (g *RedisGuard) Set(ctx context.Context, key, value string, ttl time.Duration, token int64) error {
	if ttl < 0 || ttl > 0 && ttl < time.Millisecond {
		return fmt.Errorf("fence: ttl %v is neither 0 nor at least 1ms", ttl)
	}
	return g.write(ctx, "set", key, token, value, ttl.Milliseconds())
}

// Del deletes key if it has seen no higher token, and makes it remember this one,
// though the key is gone. A key that does not exist is no error. Errors are those of
// [RedisGuard.Set].
func (g *RedisGuard) Del(ctx context.Context, key string, token int64) error {
	return g.write(ctx, "delete", key, token)
}

func (g *RedisGuard) write(ctx context.Context, op, key string, token int64, what ...any) error {
	switch {
	case g.client == nil:
		return errors.New("fence: a RedisGuard is made by NewRedis")
	case key == "":
		return errors.New("fence: key is empty")
	case strings.HasPrefix(key, guardPrefix):
		return fmt.Errorf("fence: key %q is a guard's own", short(key))
	}
	if err := checkToken(token); err != nil {
		return err
	}
	reply, err := g.run(ctx, []string{key, slot.Sibling(guardPrefix, key)}, append([]any{token}, what...))
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

// run sends the script by its hash, and as a text to a server that does not have it.
// go-redis may send it again when a reply was lost: a second time under one token is
// as good as once, and after a higher token it is refused.
func (g *RedisGuard) run(ctx context.Context, keys []string, args []any) (string, error) {
	reply, err := g.client.EvalSha(ctx, writeSHA1, keys, args...).Text()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = g.client.Eval(ctx, writeText, keys, args...).Text()
	}
	return reply, err
}

// scrub cuts the arguments off that a server quotes of a command which it does not
// know: the value is among them.
func scrub(err error) error {
	if said, _, quotes := strings.Cut(err.Error(), "with args"); quotes {
		return errors.New(strings.TrimRight(said, " ,"))
	}
	return err
}
