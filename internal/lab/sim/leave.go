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
	if closes && !c.stands() {
		c.end(history.Closed)
		close(c.over)
		c.w.must(c.lock.Close())
		return
	}
	c.die()
	c.depart(moment)
}

// die ends the client's process at once: from now on it says and logs nothing.
func (c *client) die() {
	if !c.stands() {
		c.mu.Lock()
		c.wake = make(chan struct{})
		c.mu.Unlock()
	}
	c.end(history.Died)
}

// end logs how the process ends, and up to then until when its locks were valid.
func (c *client) end(how history.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := history.Event{At: c.w.now(), Kind: how, Client: c.index + 1}
	for op, key := range c.does { // the function that runs in it ends with the process
		c.w.add(history.Event{At: e.At, Kind: history.Ended, Client: e.Client, Op: op, Key: key, Until: e.At})
	}
	for op, l := range c.held { // it may have been renewed by now
		c.w.add(history.Event{At: e.At, Kind: history.Renewed, Client: e.Client, Op: op, Key: l.Key(), Until: c.until(l)})
	}
	c.w.add(e)
	c.dead = true
	clear(c.held)
}

// depart lets what a dead process has sent arrive within a moment, and then ends its goroutines.
func (c *client) depart(moment time.Duration) {
	c.mu.Lock()
	wake := c.wake
	c.mu.Unlock()
	c.clock.pause()
	for _, p := range c.paths {
		p.set(func(p *path) { p.held[faultlink.ToClient]++; p.refused++ })
	}
	time.Sleep(moment)
	for _, p := range c.paths {
		time.Sleep(time.Microsecond)
		p.Break()
		p.gone(faultlink.ToServer)
		p.gone(faultlink.ToClient)
		p.set(func(p *path) { p.held, p.stands = [2]int{}, false })
	}
	c.clock.resume()
	close(wake)
	close(c.over)
	c.w.must(c.lock.Close())
}
