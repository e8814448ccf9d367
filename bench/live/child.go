package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/bench/child"
	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/redlock"
)

// atOnce is how many locks are acquired or released at a time.
const atOnce = 256

// acquireLimit is how long acquiring all locks may take. With more time, the first lock would
// have been renewed many times before the last was acquired.
const acquireLimit = 2 * time.Minute

// Child holds the locks of a plan and reports on out. It gives up when in ends.
func Child(plan string, in io.Reader, out io.Writer) error {
	say := json.NewEncoder(out)
	var p Plan
	if err := json.Unmarshal([]byte(plan), &p); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	goOn := make(chan bool, 1)
	go func() {
		var b [1]byte
		for {
			if _, err := in.Read(b[:]); err != nil {
				cancel(errors.New("the parent has gone"))
				return
			}
			goOn <- true
		}
	}()
	outcome, err := hold(ctx, p, func() error { return say.Encode(message{}) }, goOn)
	if err != nil {
		_ = say.Encode(message{Error: err.Error()})
		return err
	}
	return say.Encode(message{Outcome: outcome})
}

// hold acquires the locks, keeps them for the time of the plan, measures, and releases them.
// It calls tell when it has acquired all, and when the time is over.
func hold(ctx context.Context, p Plan, tell func() error, goOn <-chan bool) (*result.Renewal, error) {
	urls := make([]string, len(p.Addrs))
	for i, addr := range p.Addrs {
		urls[i] = "redis://" + addr
	}
	locks, err := redlock.Open(urls, redlock.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = locks.Close() }()
	// Hold one lock first: it sets up connections and scripts, so that these one-time costs
	// are not counted.
	if err := once(ctx, locks, p.TTL); err != nil {
		return nil, err
	}
	held := make([]*redlock.Lock, p.Locks)
	o := &result.Renewal{Locks: p.Locks, TTL: p.TTL, For: p.For}

	before := memory()
	start := time.Now()
	if err := acquireAll(ctx, locks, held, p.TTL); err != nil {
		return nil, err
	}
	o.AcquireTook = time.Since(start)
	o.PerLock = float64(memory()-before) / float64(p.Locks)

	// Locks that were acquired together are renewed together, every third of the ttl. The
	// measured time therefore begins and ends between two such renewals.
	if err := pass(ctx, p.TTL/6); err != nil {
		return nil, err
	}
	if err := tell(); err != nil {
		return nil, err
	}
	used, start := child.ProcessorTime(), time.Now()
	if err := pass(ctx, p.For); err != nil {
		return nil, err
	}
	o.Cores = (child.ProcessorTime() - used).Seconds() / time.Since(start).Seconds()

	if err := tell(); err != nil {
		return nil, err
	}
	select {
	case <-goOn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	start = time.Now()
	var why error
	o.Lost, why = releaseAll(ctx, held)
	o.ReleaseTook = time.Since(start)
	if o.Lost > 0 {
		fmt.Fprintf(os.Stderr, "%d of %d locks are lost, one of them: %v\n", o.Lost, p.Locks, why)
	}
	return o, nil
}

func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func once(ctx context.Context, locks *redlock.Redlock, ttl time.Duration) error {
	l, err := locks.Acquire(ctx, "live:first", ttl)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

// memory returns the bytes in use by heap and stacks after a collection. It does not count
// memory that the next collection would free, but it counts the unused part of half-filled
// spans.
func memory() int64 {
	runtime.GC()
	runtime.GC() // objects with a finalizer or in a sync.Pool take two collections
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func acquireAll(ctx context.Context, locks *redlock.Redlock, held []*redlock.Lock, ttl time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, acquireLimit)
	defer cancel()
	g, limited := errgroup.WithContext(limited)
	for w := range atOnce {
		g.Go(func() error {
			for i := w; i < len(held); i += atOnce {
				l, err := locks.Acquire(limited, fmt.Sprintf("live:%010d", i), ttl)
				if err != nil {
					return err
				}
				l.KeepAlive()
				held[i] = l
			}
			return nil
		})
	}
	return g.Wait()
}

// releaseAll releases the locks and counts the lost ones: those that had ended before their
// release, and those whose release failed, because the masters no longer had them or no
// majority answered. A lock that ends stays ended, so one check at the end covers the whole
// time. why is one of the reasons.
func releaseAll(ctx context.Context, held []*redlock.Lock) (lost int, why error) {
	var (
		g     errgroup.Group
		mu    sync.Mutex
		now   = time.Now() // releases take a while, which must not count
		count = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			lost++
			why = err
		}
	)
	for w := range atOnce {
		g.Go(func() error {
			for i := w; i < len(held); i += atOnce {
				l := held[i]
				ended, until := context.Cause(l.Context()), l.Until()
				err := l.Release(ctx)
				switch {
				case ended != nil:
					count(fmt.Errorf("ended: %w", ended))
				case !now.Before(until):
					count(fmt.Errorf("was valid until %v before", now.Sub(until)))
				case err != nil:
					count(err)
				}
			}
			return nil
		})
	}
	_ = g.Wait()
	return lost, why
}
