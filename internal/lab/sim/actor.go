package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scenario"
	"github.com/quorumlock/redlock/internal/lab/scene"
	"github.com/quorumlock/redlock/redlock"
)

// actor is a client of a scenario. It does what it is told, or works by itself.
type actor struct {
	st     *Stage
	number int // from 1
	starts int // how often its process has been started again

	mu     sync.Mutex
	c      *client
	held   *grant             // nil: it has none
	giveUp context.CancelFunc // ends the call that waits; nil: none does
	rest   context.CancelFunc // ends the work by itself; nil: it does not work
	tasks  sync.WaitGroup
}

// grant is a lock, or a slot of the semaphore.
type grant struct {
	lock  *redlock.Lock // nil for a slot
	seat  *seat
	op    int
	until time.Duration // as shown last
}

func newActor(st *Stage, c *client) *actor { return &actor{st: st, number: c.index + 1, c: c} }

// key is the key of all locks of a scenario.
func (a *actor) key() string { return keyName(0) }

// now returns the process and its lock.
func (a *actor) now() (*client, *grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.c, a.held
}

// task runs f on a goroutine of the client's process.
func (a *actor) task(f func(c *client)) {
	c, _ := a.now()
	a.tasks.Go(func() {
		if c.gate(); !c.gone() {
			f(c)
		}
	})
}

// says shows the reason for which an action has no effect.
func (a *actor) says(text string) {
	a.st.w.show.client(a.number, func(c *scene.Client) { c.Last = text })
}

func (a *actor) act(verb scenario.Verb) {
	c, held := a.now()
	if c.gone() && verb != scenario.Start {
		return
	}
	switch verb {
	case scenario.Pause:
		c.pause()
	case scenario.Suspend:
		if c.stands() {
			return
		}
		c.suspend()
		a.st.did(scenario.Action{Verb: verb, Client: a.number})
		a.st.w.show.client(a.number, func(s *scene.Client) { s.Suspended = true })
	case scenario.Continue:
		if c.stands() {
			c.resume()
		}
	case scenario.Die:
		a.die()
	case scenario.Start:
		if c.gone() {
			a.start()
		}
	case scenario.Acquire, scenario.Try:
		if held != nil {
			a.says("has the lock already")
			return
		}
		a.task(func(c *client) { a.acquire(c, verb == scenario.Acquire, background) })
	case scenario.GiveUp:
		a.task(func(*client) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.giveUp != nil {
				a.giveUp()
			}
		})
	case scenario.Work:
		a.work()
	case scenario.Rest:
		a.task(func(*client) { a.stopWork() })
	default:
		if held == nil {
			a.says("has no lock to " + map[scenario.Verb]string{scenario.Release: "release", scenario.Extend: "extend", scenario.KeepAlive: "keep alive", scenario.Write: "write under"}[verb])
			return
		}
		a.withLock(verb, held)
	}
}

// withLock does something with the lock that the client has.
func (a *actor) withLock(verb scenario.Verb, held *grant) {
	switch {
	case verb == scenario.Release:
		a.task(func(c *client) { a.release(c, held) })
	case verb == scenario.Write:
		a.task(func(c *client) { a.write(c, held) })
	case held.lock == nil:
		a.says("has a slot, which is not extended")
	case verb == scenario.Extend:
		a.task(func(c *client) { a.extend(c, held) })
	case verb == scenario.KeepAlive:
		a.task(func(c *client) { a.keep(held) })
	}
}

// acquire asks for the lock, and returns it; nil if it did not get it.
func (a *actor) acquire(c *client, wait bool, ctx context.Context) *grant {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.mu.Lock()
	if a.giveUp != nil || a.held != nil {
		a.mu.Unlock()
		return nil // another call is under way
	}
	a.giveUp = cancel
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.c == c { // else a new process has a call of its own
			a.giveUp = nil
		}
	}()
	if a.st.s.Slots > 0 {
		return a.took(c, c.acquireSlot(ctx, wait))
	}
	ask := c.lock.TryAcquire
	if wait {
		ask = c.lock.Acquire
	}
	op := c.begin(a.key(), wait)
	l, err := ask(ctx, a.key(), a.st.s.TTL)
	if err != nil {
		c.say(history.Denied, op, a.key(), 0, err)
		c.gate()
		return nil
	}
	c.granted(op, l)
	return a.took(c, &grant{lock: l, op: op, until: c.until(l)})
}

// took records that the client has g, until its context is done. A nil g is nothing.
func (a *actor) took(c *client, g *grant) *grant {
	if g == nil || c.gone() {
		return nil
	}
	a.mu.Lock()
	a.held = g
	a.mu.Unlock()
	context.AfterFunc(g.context(), func() { a.drop(g) })
	c.gate()
	return g
}

func (a *actor) drop(g *grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == g {
		a.held = nil
	}
}

func (g *grant) context() context.Context {
	if g.lock != nil {
		return g.lock.Context()
	}
	return g.seat.ctx
}

func (a *actor) release(c *client, g *grant) {
	a.drop(g)
	if g.lock == nil {
		c.releaseSlot(g)
		return
	}
	c.release(background, g.lock, g.op)
}

func (a *actor) extend(c *client, g *grant) {
	c.say(history.Extending, g.op, a.key(), 0, nil)
	if err := g.lock.Extend(background, a.st.s.TTL); err != nil {
		c.say(history.NotExtended, g.op, a.key(), 0, err)
	} else {
		c.sayOf(history.Extended, g.op, g.lock, nil)
	}
	c.gate()
}

func (a *actor) keep(g *grant) {
	g.lock.KeepAlive()
	a.st.w.show.client(a.number, func(s *scene.Client) {
		for i := range s.Locks {
			s.Locks[i].Kept = s.Locks[i].Kept || s.Locks[i].Op == g.op
		}
	})
}

// renewed logs that the lock has been renewed since the last tick.
func (a *actor) renewed() {
	c, g := a.now()
	if g == nil || g.lock == nil || c.gone() || c.stands() || g.lock.Context().Err() != nil {
		return
	}
	if until := c.until(g.lock); until > g.until+time.Millisecond {
		g.until = until
		c.sayOf(history.Renewed, g.op, g.lock, nil)
	}
}

// working is how long a client works before it writes to the protected resource.
const working = time.Second

// write checks the lock, works, and then writes to the protected resource. If the client stands still
// meanwhile, the write goes out late: a program cannot check its lock and write in one step.
func (a *actor) write(c *client, g *grant) {
	if g.context().Err() != nil {
		a.says("its lock has ended, so it does not write")
		return
	}
	show := a.st.w.show
	show.client(a.number, func(s *scene.Client) { s.Writing = true })
	if c.sleep(background, working); c.gone() {
		return
	}
	show.client(a.number, func(s *scene.Client) { s.Writing = false })
	token := int64(0)
	if g.lock != nil {
		token = g.lock.FencingToken()
	}
	a.st.goods.write(c, g.op, token)
}

// work lets the client do all of that by itself: it takes the lock, keeps it alive or not, writes, and
// releases it.
func (a *actor) work() {
	ctx, rest := context.WithCancel(background)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rest != nil {
		rest()
		return
	}
	a.rest = rest
	a.st.w.show.client(a.number, func(s *scene.Client) { s.Working = true })
	r := stream(a.st.s.Seed, "work", a.number, a.starts)
	c := a.c
	a.tasks.Go(func() {
		for ctx.Err() == nil && !c.gone() {
			c.sleep(ctx, between(r, 200*time.Millisecond, 1500*time.Millisecond))
			if ctx.Err() != nil || c.gone() {
				return
			}
			g := a.acquire(c, true, ctx)
			if g == nil {
				continue
			}
			if g.lock != nil && r.IntN(2) == 0 {
				a.keep(g)
			}
			a.write(c, g)
			c.sleep(g.context(), between(r, 200*time.Millisecond, 1500*time.Millisecond))
			if !c.gone() {
				a.release(c, g)
			}
		}
	})
}

// stopWork ends the work by itself. If the client waits for the lock, it gives up.
func (a *actor) stopWork() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rest == nil {
		return
	}
	a.rest()
	a.rest = nil
	a.st.w.show.client(a.number, func(s *scene.Client) { s.Working = false })
}

// die kills the client's process. What it has sent travels on.
func (a *actor) die() {
	a.mu.Lock()
	c := a.c
	a.held, a.rest = nil, nil
	a.mu.Unlock()
	c.die()
	a.tasks.Go(func() { c.depart(2 * a.st.w.plan.Latency) })
}

// start starts a new process in the place of a dead one.
func (a *actor) start() {
	w := a.st.w
	a.starts++
	old, _ := a.now()
	next := w.startClient(old, a.starts)
	a.mu.Lock()
	a.c, a.held, a.giveUp = next, nil, nil
	a.mu.Unlock()
	w.add(history.Event{At: w.now(), Kind: history.Started, Client: a.number, Text: fmt.Sprintf("process %d", a.starts+1)})
}

// end ends the client for good.
func (a *actor) end() {
	a.stopWork()
	c, _ := a.now()
	if c.stands() {
		c.resume()
	}
	a.mu.Lock()
	if a.giveUp != nil {
		a.giveUp()
	}
	a.mu.Unlock()
	if !c.gone() {
		c.leave(true, 0)
	}
	a.tasks.Wait()
}
