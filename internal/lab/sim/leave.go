package sim

import (
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
)

// gone reports whether the client's process has ended.
func (c *client) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// leave ends the client's process: it closes its Redlock, or dies. A client that stands
// still can only die. A dead client sends nothing more. What it had sent arrives within a
// moment or is lost; then its goroutines may end, cut off from all nodes.
func (c *client) leave(closes bool, moment time.Duration) {
	c.mu.Lock()
	stands := c.woke == history.Never
	e := history.Event{At: c.w.now(), Kind: history.Died, Client: c.index + 1}
	if closes = closes && !stands; closes {
		e.Kind = history.Closed
	} else if !stands {
		c.wake = make(chan struct{})
	}
	for op, key := range c.does { // the function that runs in it ends with the process
		c.w.add(history.Event{At: e.At, Kind: history.Ended, Client: e.Client, Op: op, Key: key, Until: e.At})
	}
	for op, l := range c.held { // it may have been renewed by now
		c.w.add(history.Event{At: e.At, Kind: history.Renewed, Client: e.Client, Op: op, Key: l.Key(), Until: c.until(l)})
	}
	c.w.add(e)
	c.dead = true
	clear(c.held)
	wake := c.wake
	c.mu.Unlock()
	if !closes {
		c.clock.pause()
		for _, p := range c.paths {
			p.set(func(p *path) { p.held[faultlink.ToClient]++; p.refused++ })
		}
		time.Sleep(moment)
		for _, p := range c.paths {
			time.Sleep(time.Microsecond)
			p.Break()
			p.set(func(p *path) { p.held, p.stands = [2]int{}, false })
		}
		c.clock.resume()
		close(wake)
	}
	close(c.over)
	c.w.must(c.lock.Close())
}
