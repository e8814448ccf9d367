package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/bench/contend"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// mix is clients of this library beside clients of another one, which want the same key and
// wake nobody when they release it.
type mix struct {
	name        string
	ours        int
	hold, pause time.Duration // of ours, and of theirs except with an exact beat
	theirs      int
	of          foreigner
}

// foreigner is a client of another library.
type foreigner int

const (
	ofRedsync foreigner = iota
	ofNode
	// exactBeat is redsync that takes the key every 500 ms for 400 ms, if it is free.
	exactBeat
)

const (
	beat     = 500 * time.Millisecond
	beatHold = 400 * time.Millisecond
)

var mixes = []mix{
	{"redsync-2-2", 2, 300 * time.Millisecond, 300 * time.Millisecond, 2, ofRedsync},
	{"redsync-1-6", 1, 300 * time.Millisecond, 300 * time.Millisecond, 6, ofRedsync},
	{"redsync-1-6-quick", 1, 20 * time.Millisecond, 10 * time.Millisecond, 6, ofRedsync},
	{"beat-1-1", 1, 20 * time.Millisecond, 100 * time.Millisecond, 1, exactBeat},
	{"node-2-2", 2, 300 * time.Millisecond, 300 * time.Millisecond, 2, ofNode},
	{"node-1-4", 1, 300 * time.Millisecond, 300 * time.Millisecond, 4, ofNode},
}

// A client that polls pauses for a random time between these two, as redsync does.
const pollMin, pollMax = 50 * time.Millisecond, 250 * time.Millisecond

// foreign measures each mix with Acquire and, at the same time on another key, with polling.
func foreign(ctx context.Context, o options) error {
	t := newTable(o.out, "Beside clients of other libraries",
		fmt.Sprintf("Clients of another library and of this one want the same key. *Polls* is the same mix, at the same time with another key, where ours polls TryAcquire after random pauses of %v to %v. Each mix and its control run %d times at the same time, each with a key and clients of its own, for %v; locks are summed up, waits are the longest of all. *Share* is ours of all locks.",
			pollMin, pollMax, o.replicas, o.last),
		"mix", "masters", "ours : theirs, Acquire", "ours : theirs, polls", "share, Acquire", "share, polls", "ratio", "longest wait, Acquire", "longest wait, polls", "ratio")
	var errs []error
	var node *nodeClient
	for _, m := range mixes {
		if !o.wants("foreign/" + m.name) {
			continue
		}
		if m.of == ofNode && node == nil {
			var err error
			switch node, err = installNode(ctx); {
			case errors.Is(err, errNoNode):
				progress("foreign/%s: %v", m.name, err)
				t.row(m.String(), "–", err.Error(), "", "", "", "", "", "", "")
				continue
			case err != nil:
				return errors.Join(append(errs, err)...)
			}
			defer node.remove()
		}
		for _, n := range o.masters {
			progress("foreign/%s, %d masters", m.name, n)
			if err := m.measure(ctx, o, n, node, t); err != nil {
				errs = append(errs, fmt.Errorf("%s on %d masters: %w", m.name, n, err))
			}
			if ctx.Err() != nil {
				return errors.Join(append(errs, ctx.Err())...)
			}
		}
	}
	t.end()
	return errors.Join(errs...)
}

// side is a mix with one of our two ways to wait.
type side struct {
	ours, theirs *tally
}

func (s side) share() float64 {
	ours, theirs := len(s.ours.grants), len(s.theirs.grants)
	return float64(ours) / float64(max(ours+theirs, 1))
}

func (m mix) measure(ctx context.Context, o options, masters int, node *nodeClient, t *table) (err error) {
	servers, err := redisserver.Launch(masters)
	if err != nil {
		return err
	}
	defer stopAll(servers)
	var all []*redlock.Redlock
	defer func() { err = errors.Join(err, closeAll(all)) }()
	sides := map[string]side{"acquire": {new(tally), new(tally)}, "poll": {new(tally), new(tally)}}
	quick := map[string]bool{"acquire": false, "poll": true}
	var contenders []*contender
	var keys []*place
	var foreignKeys []nodeKey
	for name, s := range sides {
		for i := range o.replicas {
			key, at := fmt.Sprintf("%s:%d", name, i), new(place)
			keys = append(keys, at)
			for range m.ours {
				r, err := open(addresses(servers), redlock.Config{})
				if err != nil {
					return err
				}
				all = append(all, r)
				take := acquires(r, key)
				if quick[name] {
					take = polls(r, key)
				}
				contenders = append(contenders, &contender{take: take, hold: m.hold, pause: m.pause, tally: s.ours, key: at})
			}
			for range m.theirs {
				c := &contender{hold: m.hold, pause: m.pause, tally: s.theirs, key: at}
				switch m.of {
				case ofNode:
					foreignKeys = append(foreignKeys, nodeKey{key, s.theirs})
					continue
				case ofRedsync:
					c.take = redsyncs(servers, key)
				case exactBeat:
					c.take, c.hold, c.pause = onBeat(redsyncs(servers, key, redsync.WithTries(1))), beatHold, 0
				}
				contenders = append(contenders, c)
			}
		}
	}
	leave := func() error { return nil }
	if m.of == ofNode {
		if leave, err = node.start(ctx, addresses(servers), foreignKeys, m.hold, m.pause); err != nil {
			return err
		}
	}
	stop := start(ctx, contenders...)
	contend.Pause(ctx, o.last)
	errs := []error{leave()}
	stop()
	for _, at := range keys {
		errs = append(errs, at.alone())
	}
	a, p := sides["acquire"], sides["poll"]
	t.row(m.String(), masters, a.locks(), p.locks(), a.share(), p.share(), a.share()/p.share(),
		a.ours.longest, p.ours.longest, a.ours.longest.Seconds()/p.ours.longest.Seconds())
	return errors.Join(append(errs, ctx.Err())...)
}

func (s side) locks() string {
	return fmt.Sprintf("%d : %d", len(s.ours.grants), len(s.theirs.grants))
}

// polls waits for a key by polling with random pauses.
func polls(r *redlock.Redlock, key string) locker {
	return func(ctx context.Context) (func(context.Context) error, error) {
		for {
			l, err := r.TryAcquire(ctx, key, expiry)
			if err == nil {
				return l.Release, nil
			}
			contend.Pause(ctx, pollMin+rand.N(pollMax-pollMin))
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
}

// redsyncs is redsync with its defaults, except for the number of tries. A contender that has
// used them up goes on at once, like one that polls.
func redsyncs(servers []*redisserver.Server, key string, options ...redsync.Option) locker {
	pools := make([]redsyncredis.Pool, len(servers))
	for i, s := range servers {
		pools[i] = goredis.NewPool(s.Client(func(o *redis.Options) { o.PoolSize = 4 }))
	}
	r := redsync.New(pools...)
	options = append([]redsync.Option{redsync.WithExpiry(expiry), redsync.WithTries(1 << 30)}, options...)
	return func(ctx context.Context) (func(context.Context) error, error) {
		m := r.NewMutex(key, options...)
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			ok, err := m.UnlockContext(ctx)
			if !ok {
				return errors.Join(redsync.ErrFailed, err)
			}
			return nil
		}, nil
	}
}

// onBeat takes a key on a beat, if it is free then.
func onBeat(take locker) locker {
	return func(ctx context.Context) (func(context.Context) error, error) {
		now := time.Now()
		contend.Pause(ctx, now.Truncate(beat).Add(beat).Sub(now))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return take(ctx)
	}
}

func (m mix) String() string {
	who := "redsync"
	if m.of == ofNode {
		who = "node-redlock"
	}
	if m.of == exactBeat {
		return fmt.Sprintf("%d of ours, %v held and %v pause, and a client that has the key for %v every %v", m.ours, m.hold, m.pause, beatHold, beat)
	}
	return fmt.Sprintf("%d of ours and %d of %s, %v held and %v pause", m.ours, m.theirs, who, m.hold, m.pause)
}
