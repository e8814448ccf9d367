package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/bench/contend"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// lookMasters is the number of masters of look, and lookDown how many of them do not answer.
const lookMasters, lookDown = 5, 2

// look measures how long a release that wakes nobody goes unnoticed. Each waiter is alone in
// the queue of its key. The releases are spread over half a minute, longer than the pause
// between two looks.
func look(ctx context.Context, o options) error {
	t := newTable(o.out, "A release that wakes nobody",
		fmt.Sprintf("%d waiters, each alone with a key that a client of another library holds, which releases it after %v to %v by a compare-and-delete on each of %d masters. The waiters reach all of them, or %d refuse, or %d say nothing.",
			o.looks, o.lookFor, o.lookFor+30*time.Second, lookMasters, lookDown, lookDown),
		"masters", "noticed after, median", "at most", "not noticed within 90 s")
	progress("look")
	servers, err := redisserver.Launch(lookMasters)
	if err != nil {
		return err
	}
	defer stopAll(servers)
	ways := []*lookWay{{name: "all answer"}, {name: fmt.Sprintf("%d refuse", lookDown)}, {name: fmt.Sprintf("%d are silent", lookDown)}}
	for i, w := range ways {
		for _, s := range servers {
			l, err := redisserver.OpenLink(s.Addr())
			if err != nil {
				return err
			}
			defer l.Close()
			w.links, w.addrs = append(w.links, l), append(w.addrs, l.Addr())
		}
		for _, l := range w.links[:lookDown] {
			switch i {
			case 1:
				l.Refuse()
			case 2:
				l.Stall()
			}
		}
	}
	var g sync.WaitGroup
	for _, w := range ways {
		g.Go(func() { w.err = w.run(ctx, o, servers) })
	}
	g.Wait()
	var errs []error
	for _, w := range ways {
		errs = append(errs, w.err)
		if len(w.took) > 0 {
			slices.Sort(w.took)
			t.row(w.name, w.took[len(w.took)/2], w.took[len(w.took)-1], w.never)
		}
	}
	t.end()
	return errors.Join(append(errs, ctx.Err())...)
}

// lookWay is one way in which masters are down.
type lookWay struct {
	name  string
	links []*redisserver.Link
	addrs []string
	mu    sync.Mutex
	took  []time.Duration
	never int
	err   error
}

// run lets all waiters share one Redlock: they do not affect each other.
func (w *lookWay) run(ctx context.Context, o options, servers []*redisserver.Server) (err error) {
	r, err := open(w.addrs, redlock.Config{})
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range w.links { // Close would wait for the silent masters
			l.Resume()
		}
		err = errors.Join(err, r.Close())
	}()
	var clients []*redis.Client
	for _, s := range servers {
		clients = append(clients, s.Client())
	}
	errs := make([]error, o.looks)
	var g sync.WaitGroup
	for i := range o.looks {
		g.Go(func() {
			errs[i] = w.one(ctx, r, clients, fmt.Sprintf("%s %d", w.name, i),
				o.lookFor+30*time.Second*time.Duration(i)/time.Duration(o.looks))
		})
	}
	g.Wait()
	return errors.Join(errs...)
}

// one measures one key, which another client holds for d.
func (w *lookWay) one(ctx context.Context, r *redlock.Redlock, clients []*redis.Client, key string, d time.Duration) error {
	const value, theirs = "not ours", time.Hour
	for _, c := range clients {
		if err := c.Do(ctx, "set", key, value, "nx", "px", theirs.Milliseconds()).Err(); err != nil {
			return err
		}
	}
	var released time.Time
	done, cancel := context.WithTimeout(ctx, d+90*time.Second)
	defer cancel()
	freed := make(chan error, 1)
	go func() {
		contend.Pause(ctx, d)
		released = time.Now()
		var errs []error
		for _, c := range clients {
			errs = append(errs, c.Eval(ctx, "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0", []string{key}, value).Err())
		}
		freed <- errors.Join(errs...)
	}()
	l, err := r.Acquire(done, key, expiry)
	now := time.Now()
	if err := <-freed; err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.never++
		return ctx.Err()
	}
	if now.Before(released) {
		return fmt.Errorf("%s was acquired while it was held", key)
	}
	w.took = append(w.took, now.Sub(released))
	_ = l.Release(ctx)
	return nil
}
