package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// settle waits until nothing is left of the faults: no goroutine waits for a dead
// connection any more, and no node is in quarantine.
func (w *world) settle(c *client) {
	c.sleep(background, settled)
	if w.plan.Guard == 0 {
		return
	}
	// A client does not yet know of servers that lost their memory since it last talked to
	// them.
	if l, err := c.lock.TryAcquire(background, ownKey(c), longest); err == nil {
		w.must(l.Release(background))
	}
	c.sleep(background, w.quarantine())
}

func ownKey(c *client) string { return fmt.Sprintf("own%d", 1+c.index) }

// calm takes a client through a lock's life on a key of its own, when nothing fails any
// more and nobody else wants the key. Under faults most outcomes have an excuse; here each
// operation has one right answer, whatever the client's clock and the number of nodes. At
// the end the client closes while it holds a lock and waits for it.
//
// calm skips a client whose clock is slower than its drift allows for, as it loses the
// locks that it keeps alive.
func (w *world) calm(c *client, number int) {
	if plan := w.plan.Clients[c.index]; plan.Rate < 1-plan.Drift.Factor {
		return
	}
	key := ownKey(c)
	want := func(what string, ok bool, got any) {
		if !ok {
			w.report(history.Violation{At: w.now(), Rule: Calm, Key: key, Text: fmt.Sprintf("client %d %s: %v", c.index+1, what, got)})
		}
	}
	left := func(l *redlock.Lock) time.Duration { return l.Until().Sub(c.clock.Now()) }
	has := func(l *redlock.Lock) (nodes int) {
		for _, m := range w.servers() {
			if value, err := m.Miniredis().Get(l.Key()); err == nil && value == l.Value() {
				nodes++
			}
		}
		return nodes
	}
	forget := func(nodes int) {
		for i, m := range w.servers()[:nodes] {
			m.Miniredis().Del(key)
			w.mu.Lock()
			delete(w.stored, storage{w.plan.serves(i, w.now()), key})
			w.mu.Unlock()
		}
	}
	gone := func(key string) bool {
		for _, m := range w.servers() {
			if m.Miniredis().Exists(key) {
				return false
			}
		}
		return true
	}
	take := func(ttl time.Duration) *redlock.Lock {
		ctx, cancel := context.WithTimeout(background, patience)
		defer cancel()
		l, err := c.lock.Acquire(ctx, key, ttl)
		want("did not get its own lock", err == nil, err)
		return l
	}
	cut := func(n int, paths ...*path) {
		for _, p := range paths {
			p.set(func(p *path) { p.held[faultlink.ToServer] += n })
		}
	}
	brief := 100 * time.Millisecond
	long := veryLong
	if w.plan.Guard > 0 {
		long = w.plan.Guard // no ttl may be longer
	}
	over, cancel := context.WithCancel(background)
	cancel()

	// A lock that is kept alive lives on, and so does the lock of a Do.
	err := c.lock.Do(background, key, brief, func(ctx context.Context) error {
		c.sleep(ctx, 3*brief)
		return context.Cause(ctx)
	})
	want("lost the lock of its Do", err == nil, err)
	l := take(brief)
	if l == nil {
		return
	}
	l.KeepAlive()
	c.sleep(l.Context(), 3*brief)
	want("lost a lock that it kept alive", l.Context().Err() == nil, context.Cause(l.Context()))

	// Renewal goes on with the last ttl, and puts the key back on nodes that lost it.
	err = l.Extend(background, longest)
	want("could not extend its lock", err == nil && left(l) > longest/2, err)
	forget(w.plan.Nodes - quorum.Size(w.plan.Nodes))
	c.sleep(l.Context(), longest)
	want("kept its lock alive with another ttl than the last", left(l) > longest/2, left(l))
	want("did not give its lock back to the nodes that lost it", has(l) == w.plan.Nodes, has(l))

	// Others cannot have the lock, and leave nothing behind.
	_, err = c.lock.TryAcquire(background, key, longest)
	want("is not told that the key is held", errors.Is(err, redlock.ErrHeld), err)

	// After one Release, even with a context that is over, the lock is gone from all nodes,
	// also from those on which an extension is about to put it back.
	forget(w.plan.Nodes - quorum.Size(w.plan.Nodes))
	err = l.Extend(background, longest)
	want("could not extend what a majority has", err == nil, err)
	err = l.Release(over)
	want("could not release its lock", err == nil, err)
	err = l.Release(background)
	want("released its lock twice", errors.Is(err, redlock.ErrReleased) && !errors.Is(err, redlock.ErrNotHeld), err)
	c.sleep(background, brief)
	want("left its lock behind", has(l) == 0, has(l))

	// A renewal without a quorum is tried again. A caller that asks meanwhile gets
	// ErrNoQuorum, and the effects of its late requests are undone.
	if l = take(longest); l != nil {
		l.KeepAlive()
		c.sleep(l.Context(), longest*3/10)
		cut(1, c.paths...)
		_, err = c.lock.TryAcquire(background, key+"+", brief)
		want("is not told that there is no quorum", errors.Is(err, redlock.ErrNoQuorum), err)
		c.sleep(l.Context(), longest/5)
		cut(-1, c.paths...)
		c.sleep(background, brief/2)
		want("left what was granted late", gone(key+"+"), "")
		c.sleep(l.Context(), longest)
		want("gave up a lock after one renewal in vain", l.Context().Err() == nil, context.Cause(l.Context()))

		// A renewal whose answers take longer than NodeTimeout counts, if the lock has time
		// for it.
		if late := w.plan.Clients[c.index].NodeTimeout; late <= longest/20 {
			delay := func(d time.Duration) {
				for _, p := range c.paths {
					p.set(func(p *path) { p.late += d })
				}
			}
			delay(late)
			c.sleep(l.Context(), longest)
			delay(-late)
			want("gave up a lock because its renewals took longer than NodeTimeout", l.Context().Err() == nil, context.Cause(l.Context()))
		}
		err = l.Release(background)
		want("could not release its lock", err == nil, err)
	}

	// An extension gives the key to a node that was out of reach, and the release removes
	// it there.
	if w.plan.Nodes > 2 && long == veryLong {
		c.paths[0].set(func(p *path) { p.refused++ })
		c.paths[0].Break()
		c.sleep(background, brief)
		l = take(veryLong)
		c.paths[0].set(func(p *path) { p.refused-- })
		if l == nil {
			return
		}
		c.sleep(background, 2*time.Second) // until a default client has dialled again
		err = l.Extend(background, veryLong)
		c.sleep(background, brief)
		want("did not give its lock to a node that had been out of reach", err == nil && has(l) == w.plan.Nodes, has(l))
		err = l.Release(background)
		want("could not release its lock", err == nil, err)
		c.sleep(background, brief)
		want("left behind what it gave to a node later", has(l) == 0, has(l))
	}

	// A lock that most nodes have lost is lost at once.
	if l = take(long); l != nil {
		c.sleep(background, brief) // also for the nodes that were not waited for
		forget(max(w.plan.Nodes-1, 1))
		err = l.Extend(background, long)
		want("is not told of its loss", errors.Is(err, redlock.ErrNotHeld) && errors.Is(context.Cause(l.Context()), redlock.ErrNotHeld), err)
		c.sleep(background, brief)
		want("gave a lost lock back to nodes", has(l) <= 1, has(l))
		err = l.Release(background)
		want("released what it had lost", errors.Is(err, redlock.ErrNotHeld), err)
	}

	w.calmCancel(c, key+"!", want)

	if number == 0 {
		w.calmBurst(c, long, want)
	}

	// A lost release is sent again, on a timer or at the latest by Close.
	if number%2 == 0 {
		for _, closes := range []bool{false, true} {
			if l = take(brief); l == nil {
				return
			}
			err = l.Extend(background, long)
			want("could not extend its lock", err == nil, err)
			c.sleep(background, brief)
			c.paths[0].set(func(p *path) { p.loseAsk++ })
			_ = l.Release(background)
			c.sleep(background, 2*brief) // longer than the first ttl
			c.paths[0].set(func(p *path) { p.loseAsk-- })
			if closes {
				// Close gives up on a batch that is lost under way and takes longer than
				// NodeTimeout. By now no batch is, and the next repetition is not due yet.
				c.sleep(background, brief)
				w.must(c.lock.Close())
			} else {
				c.sleep(background, 2*time.Second)
			}
			want("left behind what it had released", gone(key), has(l))
		}
		return
	}

	// Close releases the locks that are held, and ends the waits.
	if l = take(long); l == nil {
		return
	}
	waits := make(chan error)
	go func() {
		_, err := c.lock.Acquire(background, key, longest)
		waits <- err
	}()
	c.sleep(background, brief)
	w.must(c.lock.Close())
	err = <-waits
	want("waits for a lock though it is closed", errors.Is(err, redlock.ErrClosed), err)
	want("holds a lock though it is closed", errors.Is(context.Cause(l.Context()), redlock.ErrClosed), context.Cause(l.Context()))
	want("closed, and left its lock behind", gone(key), has(l))
	want("closed, and left its place in the queue", gone(slot.Sibling(queuePrefix, key)) && gone(slot.Sibling(flagPrefix, key)), "")
}
