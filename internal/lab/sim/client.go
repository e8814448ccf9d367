package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/redlock"
)

// client is one process: a Redlock with a clock of its own, and paths to the nodes.
type client struct {
	w     *world
	index int
	clock *hostClock
	paths []*path
	nodes []redis.UniversalClient
	lock  *redlock.Redlock

	random *rand.Rand // decides whether its network or its timers resume first

	mu   sync.Mutex
	ops  int
	held map[int]*redlock.Lock // by op, until the context is done or the lock is released
	does map[int]string        // keys by op, while their Do runs
	box  []parcel              // handles that other clients have sent
	wake chan struct{}         // closed unless the client stands still
	woke time.Duration         // when it last went on; Never while it stands still
	dead bool                  // its process has ended, and its goroutines log nothing any more
	over chan struct{}         // closed when its goroutines are to end
}

func (w *world) newClient(i int) *client { return w.newProcess(i) }

// startClient starts a new process in the place of one that has ended. Its random sources are others, so
// that its locks have values of their own.
func (w *world) startClient(old *client, starts int) *client {
	w.mu.Lock()
	w.former = append(w.former, old)
	w.mu.Unlock()
	c := w.newProcess(old.index, starts)
	c.ops = old.ops
	for i, p := range old.paths {
		p.handOver(c.paths[i])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients[old.index] = c
	return c
}

// newProcess starts a client's process. starts tells it from earlier ones of the client.
func (w *world) newProcess(i int, starts ...int) *client {
	plan := w.plan.Clients[i]
	c := &client{w: w, index: i, clock: newHostClock(plan.Rate, plan.Offset), held: map[int]*redlock.Lock{}, does: map[int]string{}, wake: make(chan struct{}), over: make(chan struct{})}
	c.random = stream(w.plan.Config.Seed, "wake", i)
	close(c.wake)
	for n := range w.plan.Nodes {
		p := newPath(w.plan.Config.Seed, i, n, w.masters.Master(n))
		if p.show = w.show; w.plan.Latency > 0 {
			p.base = w.plan.Latency
		}
		c.paths = append(c.paths, p)
		c.nodes = append(c.nodes, p.Client(func(opts *redis.Options) {
			// go-redis draws its retry pauses from a random source of its own, so the least
			// pause and the longest are the same.
			opts.Dialer = p.connect(opts.Dialer)
			opts.MinRetryBackoff, opts.MaxRetryBackoff = 20*time.Millisecond, 20*time.Millisecond
			if plan.Single {
				opts.PoolSize = 1
			}
			if plan.Careful {
				opts.MaxRetries, opts.DialerRetries = -1, 1
				patience := max(time.Second, plan.NodeTimeout)
				opts.DialTimeout, opts.ReadTimeout = patience, patience
			}
		}))
	}
	lock, err := redlock.New(c.nodes, redlock.Config{
		NodeTimeout: plan.NodeTimeout,
		Drift:       plan.Drift,
		Owner:       fmt.Sprintf("client %d", i+1), // not this process, so that a run can be repeated
		Clock:       c.clock,
		Rand:        reader{stream(w.plan.Config.Seed, "values", append([]int{i}, starts...)...)},
		Observer:    w.show.observer(i+1, c.clock),

		Fencing: w.plan.Fencing,
		Fair:    w.plan.Fair,

		Reentrant: w.plan.Ways && plan.Reentrant,

		FenceRetention: plan.Retention,
		RestartGuard:   w.plan.Guard,
	})
	w.must(err)
	c.lock = lock
	return c
}

// reader turns a source of random numbers into one of random bytes.
type reader struct{ *rand.Rand }

func (r reader) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += 8 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], r.Uint64())
		copy(p[i:], b[:])
	}
	return len(p), nil
}

// pause makes the client stand still: its timers do not fire, nothing reaches it, and its
// goroutines stop at their next gate.
func (c *client) pause() {
	if c.gone() || c.stands() {
		return
	}
	c.w.add(history.Event{At: c.w.now(), Kind: history.Paused, Client: c.index + 1})
	c.mu.Lock()
	c.wake, c.woke = make(chan struct{}), history.Never
	c.mu.Unlock()
	c.clock.pause()
	for _, p := range c.paths {
		p.set(func(p *path) { p.held[faultlink.ToClient]++; p.stands = true })
	}
}

// suspend puts the client's machine to sleep: its monotonic clock stands still too.
func (c *client) suspend() {
	if !c.stands() {
		c.clock.suspend()
		c.pause()
	}
}

// stands reports whether the client stands still.
func (c *client) stands() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.woke == history.Never
}

// resume lets the client go on, one part after the other so that a run can be repeated:
// first its network, with all that was sent to it meanwhile, or first its timers.
func (c *client) resume() {
	if c.gone() {
		return
	}
	c.w.add(history.Event{At: c.w.now(), Kind: history.Resumed, Client: c.index + 1})
	networkFirst := c.random.IntN(2) == 0
	if !networkFirst {
		c.clock.resume()
	}
	for _, p := range c.paths {
		time.Sleep(time.Microsecond)
		p.set(func(p *path) { p.held[faultlink.ToClient]--; p.stands = false })
	}
	time.Sleep(time.Microsecond)
	if c.gone() {
		return
	}
	if networkFirst {
		c.clock.resume()
	}
	c.mu.Lock()
	close(c.wake)
	c.woke = c.w.now()
	c.mu.Unlock()
}

// gate blocks while the client stands still.
func (c *client) gate() {
	c.mu.Lock()
	wake := c.wake
	c.mu.Unlock()
	<-wake
}

// sleep lets d of the client's own time pass. It ends early with ctx or the client.
func (c *client) sleep(ctx context.Context, d time.Duration) {
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	case <-c.over:
	}
	c.gate()
}

// say logs something that the client does or learns.
func (c *client) say(kind history.Kind, op int, key string, until time.Duration, err error) {
	c.log(history.Event{Kind: kind, Op: op, Key: key, Until: until}, err)
}

// sayOf is say about a lock that the client got.
func (c *client) sayOf(kind history.Kind, op int, l *redlock.Lock, err error) {
	c.log(history.Event{Kind: kind, Op: op, Key: l.Key(), Until: c.until(l), Token: l.FencingToken()}, err)
}

func (c *client) log(e history.Event, err error) {
	if c.gone() {
		return
	}
	e.At, e.Client = c.w.now(), c.index+1
	if err != nil {
		e.Err = brief(err)
	}
	c.w.add(e)
}

// until returns the end of a lock's validity in true time.
func (c *client) until(l *redlock.Lock) time.Duration { return c.w.now() + c.clock.until(l.Until()) }

// brief returns the reason in an error, without the details of each node.
func brief(err error) string {
	for _, known := range []error{
		redlock.ErrHeld, redlock.ErrNoQuorum, redlock.ErrNotHeld, redlock.ErrExpired,
		redlock.ErrReleased, redlock.ErrClosed, redlock.ErrDetached, redlock.ErrReentrant,
	} {
		if errors.Is(err, known) {
			s := known.Error()
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				s += fmt.Sprintf(" (%v)", cause(err))
			}
			return s
		}
	}
	return err.Error()
}

func cause(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	return context.DeadlineExceeded
}
