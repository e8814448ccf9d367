package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// These scripts send the same commands as Redisson's RLock, in the same order (RedissonLock.java,
// RedissonBaseLock.java and RedissonFencedLock.java of redisson/redisson). A lock is a hash with one
// field for the thread that has it; the field's number counts how often that thread has locked it.
var (
	// KEYS[1] the lock; ARGV[1] the lease in milliseconds; ARGV[2] the thread. It returns nothing if
	// the thread now has the lock, and otherwise the milliseconds until the lock expires.
	redissonTake = redis.NewScript(`
		local vacant = redis.call('EXISTS', KEYS[1]) == 0
		if vacant or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
			redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
			redis.call('PEXPIRE', KEYS[1], ARGV[1])
			return false
		end
		return redis.call('PTTL', KEYS[1])`)

	// KEYS[2] is the counter of tokens. It returns {-1, token} if the thread now has the lock.
	redissonTakeFenced = redis.NewScript(`
		local vacant = redis.call('EXISTS', KEYS[1]) == 0
		if vacant or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
			local token = redis.call('INCR', KEYS[2])
			redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
			redis.call('PEXPIRE', KEYS[1], ARGV[1])
			return {-1, token}
		end
		return {redis.call('PTTL', KEYS[1]), -1}`)

	// KEYS[2] the queue of threads; KEYS[3] until when each of them waits; ARGV[3] for how long it
	// waits; ARGV[4] the time in milliseconds (RedissonFairLock.java). It returns nothing if the thread
	// now has the lock, and otherwise the milliseconds until its turn.
	redissonTakeFair = redis.NewScript(`
		local now = tonumber(ARGV[4])
		local head = redis.call('LINDEX', KEYS[2], 0)
		while head and tonumber(redis.call('ZSCORE', KEYS[3], head)) <= now do
			redis.call('ZREM', KEYS[3], head)
			redis.call('LPOP', KEYS[2])
			head = redis.call('LINDEX', KEYS[2], 0)
		end
		if redis.call('EXISTS', KEYS[1]) == 0 and (not head or head == ARGV[2]) then
			redis.call('LPOP', KEYS[2])
			redis.call('ZREM', KEYS[3], ARGV[2])
			for _, other in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
				redis.call('ZINCRBY', KEYS[3], -tonumber(ARGV[3]), other)
			end
			redis.call('HSET', KEYS[1], ARGV[2], 1)
			redis.call('PEXPIRE', KEYS[1], ARGV[1])
			return false
		end
		if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
			redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
			redis.call('PEXPIRE', KEYS[1], ARGV[1])
			return false
		end
		local left = redis.call('PTTL', KEYS[1])
		if redis.call('ZADD', KEYS[3], left + tonumber(ARGV[3]) + now, ARGV[2]) == 1 then
			redis.call('RPUSH', KEYS[2], ARGV[2])
		end
		return left`)

	// It returns 1 if the thread has the lock, whose lease then begins anew, and otherwise 0.
	redissonRenew = redis.NewScript(`
		if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
			return 0
		end
		redis.call('PEXPIRE', KEYS[1], ARGV[1])
		return 1`)

	// KEYS[2] the channel; KEYS[3] the latch, which keeps the result for a repeated command; ARGV[3]
	// how long to keep it. It returns nothing if the thread does not have the lock, and otherwise
	// whether the lock is now free.
	redissonGive = redis.NewScript(`
		local before = redis.call('GET', KEYS[3])
		if before then
			return tonumber(before)
		end
		if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
			return false
		end
		local free = 0
		if redis.call('HINCRBY', KEYS[1], ARGV[2], -1) > 0 then
			redis.call('PEXPIRE', KEYS[1], ARGV[1])
		else
			redis.call('DEL', KEYS[1])
			redis.call('PUBLISH', KEYS[2], 0)
			free = 1
		end
		redis.call('SET', KEYS[3], free, 'PX', ARGV[3])
		return free`)

	// forceUnlock.
	redissonForce = redis.NewScript(`
		if redis.call('DEL', KEYS[1]) == 0 then
			return 0
		end
		redis.call('PUBLISH', KEYS[2], 0)
		return 1`)
)

// redissonName is how Redisson names what belongs to a lock.
func redissonName(prefix, lock string) string {
	if strings.Contains(lock, "{") {
		return prefix + ":" + lock
	}
	return prefix + ":{" + lock + "}"
}

// rLock is what one thread of a Redisson client does with RLocks on one master.
type rLock struct {
	client *redis.Client
	thread string
}

// errWrongType is that a master refused a script because the key has another type than it expects.
// Redisson throws it as a RedisException.
var errWrongType = fmt.Errorf("%w: WRONGTYPE", errRefused)

func wrongType(err error) error {
	if err != nil && strings.Contains(err.Error(), "WRONGTYPE") {
		return errWrongType
	}
	return err
}

// tryLock returns errRefused if another thread has the lock, and errWrongType if the key is no hash.
func (r rLock) tryLock(ctx context.Context, key string) error {
	left, err := redissonTake.Run(ctx, r.client, []string{key}, ttl.Milliseconds(), r.thread).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return wrongType(err)
	}
	return fmt.Errorf("%w for %d ms", errRefused, left)
}

// tryLockAndGetToken is tryLock of a FencedLock.
func (r rLock) tryLockAndGetToken(ctx context.Context, key string) (token int64, err error) {
	keys := []string{key, redissonName("redisson_lock_token", key)}
	two, err := redissonTakeFenced.Run(ctx, r.client, keys, ttl.Milliseconds(), r.thread).Int64Slice()
	switch {
	case err != nil:
		return 0, wrongType(err)
	case two[0] != -1:
		return 0, fmt.Errorf("%w for %d ms", errRefused, two[0])
	}
	return two[1], nil
}

// tryFairLock is one attempt of a FairLock that waits: a thread that is refused stays in the queue.
func (r rLock) tryFairLock(ctx context.Context, key string) error {
	keys := []string{key, redissonName("redisson_lock_queue", key), redissonName("redisson_lock_timeout", key)}
	left, err := redissonTakeFair.Run(ctx, r.client, keys, ttl.Milliseconds(), r.thread, ttl.Milliseconds(), time.Now().UnixMilli()).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return wrongType(err)
	}
	return fmt.Errorf("%w for %d ms", errRefused, left)
}

// renew is what the watchdog does every third of the lease.
func (r rLock) renew(ctx context.Context, key string) (held bool, err error) {
	held, err = redissonRenew.Run(ctx, r.client, []string{key}, ttl.Milliseconds(), r.thread).Bool()
	return held, wrongType(err)
}

func (r rLock) unlock(ctx context.Context, key string) error {
	latch := redissonName("redisson_unlock_latch", key) + ":" + r.thread
	keys := []string{key, redissonName("redisson_lock__channel", key), latch}
	err := redissonGive.Run(ctx, r.client, keys, ttl.Milliseconds(), r.thread, ttl.Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return errors.New("attempt to unlock a lock that is not locked by this thread")
	}
	if err != nil {
		return wrongType(err)
	}
	return r.client.Del(ctx, latch).Err()
}

func (r rLock) forceUnlock(ctx context.Context, key string) (bool, error) {
	return redissonForce.Run(ctx, r.client, []string{key, redissonName("redisson_lock__channel", key)}).Bool()
}

// newThread returns the name of a thread of a new Redisson client: the client's UUID and the
// thread's number.
func newThread() string { return uuid.NewString() + ":1" }

// rLockOther has an RLock on the first of the masters.
func rLockOther(m *masters) other {
	r := rLock{m.servers[0].Client(), newThread()}
	return func(ctx context.Context, key string) (func(context.Context) error, error) {
		if err := r.tryLock(ctx, key); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return r.unlock(ctx, key) }, nil
	}
}

// redLockOther has a RedissonRedLock with an RLock of the same name on each master. It asks one
// after the other, and counts an exception as a refusal (RedissonMultiLock.java).
func redLockOther(m *masters) other {
	var all []rLock
	thread := newThread()
	for _, s := range m.servers {
		all = append(all, rLock{s.Client(), thread})
	}
	need := len(all)/2 + 1
	return func(ctx context.Context, key string) (func(context.Context) error, error) {
		var have []rLock
		unlock := func(ctx context.Context) error {
			var errs []error
			for _, r := range have {
				errs = append(errs, r.unlock(ctx, key))
			}
			return errors.Join(errs...)
		}
		for _, r := range all {
			if err := r.tryLock(ctx, key); err == nil {
				have = append(have, r)
			} else if !errors.Is(err, errRefused) {
				return nil, err
			}
		}
		if len(have) < need {
			return nil, errors.Join(errRefused, unlock(ctx))
		}
		return unlock, nil
	}
}
