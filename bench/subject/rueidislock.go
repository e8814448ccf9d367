package subject

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/quorumlock/redlock/bench/result"
)

// ownModel is rueidislock: a majority of keys in one client, here on one master, not a
// majority of independent masters. Its figures are shown for comparison only. A held lock is
// renewed until it is released, with a goroutine for each key; a release waits for all keys.
//
// It has the defaults (2 of 3 keys, client-side caching), except for
//
//   - NoLoopTracking, which its documentation recommends from Redis 7.0.5 on;
//   - TryNextAfter: its 20 ms for one key are less than a key takes with a thousand callers,
//     which would then fail instead of wait;
//   - KeyValidity, the ttl that all subjects have.
type ownModel struct{ locker rueidislock.Locker }

const ownModelKeys = 3 // 2*KeyMajority-1, by default

var rueidislockSpec = Spec{
	Name:      result.Rueidis,
	Open:      openRueidislock,
	Wait:      waitRueidis,
	OneMaster: true,
	Keys: func(key string) []string {
		keys := make([]string, ownModelKeys)
		for i := range keys {
			keys[i] = fmt.Sprintf("rueidislock:%d:%s", i, key)
		}
		return keys
	},
	Refused: is(rueidislock.ErrNotLocked),
}

func openRueidislock(t Target) (Locker, error) {
	client := rueidis.ClientOption{
		InitAddress:       t.Addrs[:1],
		ForceSingleClient: true, // not a Cluster: do not ask
	}
	if t.Sent != nil {
		client.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return t.Sent.dialWith(ctx, d, "tcp", addr)
		}
	}
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   client,
		KeyValidity:    TTL,
		TryNextAfter:   2 * time.Second,
		NoLoopTracking: true,
	})
	if err != nil {
		return nil, err
	}
	return ownModel{l}, nil
}

func (o ownModel) Close() error {
	o.locker.Close()
	return nil
}

func (o ownModel) Caller() Caller { return &ownModelCaller{locker: o.locker} }

type ownModelCaller struct {
	locker  rueidislock.Locker
	release context.CancelFunc
}

func (c *ownModelCaller) Acquire(ctx context.Context, key string) (err error) {
	_, c.release, err = c.locker.TryWithContext(ctx, key)
	return err
}

// Release cannot fail: rueidislock does not report whether the lock was still held.
func (c *ownModelCaller) Release(context.Context) error {
	c.release()
	return nil
}
