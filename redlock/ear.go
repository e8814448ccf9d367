package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/redlock/internal/conn"
	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// ear listens to one server on a connection of its own, which is made when somebody
// begins to wait and given up when nobody has waited for a while. One that breaks is
// made again: what was said meanwhile is lost, so those who wait then ask anew.
//
// go-redis' PubSub makes a new connection by itself, under a lock that whoever closes it
// needs too, and panics with that lock held on what is no message. So it is given a live
// context while an ear connects, when nobody else touches it, and one that has ended
// after that.
type ear struct {
	ears    *ears
	node    int
	client  *redis.Client // of conn.Beside
	sharded bool
	stale   func() // the server has said that a slot is not its own; nil: it cannot

	mu       sync.Mutex
	channels map[string]bool // those to listen on; true: the server has confirmed it
	sub      *redis.PubSub   // nil: not connected
	renewals int             // how often a connection was given up for one to another server
	running  bool
	closed   bool
	idle     time.Time // since when nobody has waited; zero: somebody does
}

const (
	// quietFor is how long a connection may say nothing before it is asked whether it is
	// still there, and idleFor after how long without anybody who waits it is given up.
	quietFor = 5 * time.Second
	idleFor  = 10 * time.Second
	// What cannot be listened to is tried again after firstRetune, then ever more rarely
	// up to lastRetune; a server that does not permit it or has no such thing, after
	// conn.RetryDenied.
	firstRetune = 10 * time.Millisecond
	lastRetune  = time.Second
)

var errReplaced = errors.New("another server has taken over")

// tune has a channel listened to, from as soon as that is possible.
func (e *ear) tune(channel string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = time.Time{}
	if e.closed {
		return
	}
	if _, known := e.channels[channel]; !known {
		e.channels[channel] = false
		if sub := e.sub; sub != nil {
			// If this fails the connection is broken, and the next one has the channel too.
			e.ears.running.Go(func() { _ = e.subscribe(e.ears.gone, sub, channel) })
		}
	}
	if !e.running {
		e.running = true
		e.ears.running.Go(e.run)
	}
}

// untune has a channel not listened to any more, from the next connection on.
func (e *ear) untune(channel string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.channels, channel)
}

// hears reports whether messages on the channel arrive.
func (e *ear) hears(channel string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.channels[channel]
}

// rest says that nobody waits just now.
func (e *ear) rest(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = now
}

// close ends the ear. One that is connecting ends when that does.
func (e *ear) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.sub != nil {
		_ = e.sub.Close()
	}
}

// renew gives up the connection, as the node's lane has met another server than before. The
// one that the ear listens to may live on without the node's clients: a master that was
// deposed, or whose address now leads elsewhere. It would answer PING, and be silent about
// every release. Both connections are made through one client, so the next one leads to
// where the lane's does. A connection that is being made may lead to either.
func (e *ear) renew() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.renewals++
	if sub := e.sub; sub != nil && !e.closed {
		e.ears.running.Go(func() { _ = sub.Close() }) // it may have to wait for a write that is under way
	}
}

// run listens until nobody needs it.
func (e *ear) run() {
	pause := time.Duration(0)
	for {
		heard, err := e.listen()
		e.deaf()
		if e.done() {
			return
		}
		switch {
		case conn.Moved(err), errs.Says(err, "CROSSSLOT"):
			e.forget()
			pause = min(max(2*pause, firstRetune), lastRetune)
		case conn.Denied(err):
			e.ears.refused(e.node, err)
			pause = conn.RetryDenied
		case heard && !errs.Answered(err):
			pause = firstRetune
		default: // also a refusal that passes: a script is running, or there are too many clients
			pause = min(max(2*pause, firstRetune), lastRetune)
		}
		if !e.ears.sleep(pause) {
			return
		}
	}
}

// forget gives all channels up, as one of them is another server's now. Who waits has
// them looked up again.
func (e *ear) forget() {
	e.mu.Lock()
	clear(e.channels)
	e.mu.Unlock()
	if e.stale != nil {
		e.stale()
	}
}

// done reports whether there is no more need to listen; if so, run ends.
func (e *ear) done() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.unneeded() {
		e.running = false
		clear(e.channels)
		return true
	}
	return false
}

// deaf takes note that the connection broke. Only the waits of channels that were heard on it
// are told: nothing has changed for the others, however often the server cannot be reached.
func (e *ear) deaf() {
	e.mu.Lock()
	e.sub = nil
	var lost []string
	for channel, heard := range e.channels {
		if heard {
			e.channels[channel] = false
			lost = append(lost, channel)
		}
	}
	e.mu.Unlock()
	slices.Sort(lost) // so that a simulation can be repeated
	for _, channel := range lost {
		e.ears.lost(e.node, channel)
	}
}

// listen connects and passes on what is said, until the connection breaks or is not
// needed. heard tells that the server let us listen.
func (e *ear) listen() (heard bool, err error) {
	var sub *redis.PubSub
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", conn.ErrGarbled, p) // sub's lock may be held for ever
		} else if sub != nil {
			_ = sub.Close()
		}
	}()
	if sub, err = e.connect(); err != nil {
		return false, err
	}
	asked := false
	for {
		patience := quietFor
		if asked || !heard {
			patience = min(max(time.Second, e.ears.r.cfg.NodeTimeout), quietFor)
		}
		said, err := sub.ReceiveTimeout(e.ears.gone, patience)
		switch {
		case err == nil:
			asked = false
		case silent(err) && heard && !asked:
			if e.unused() {
				return heard, nil
			}
			if err := sub.Ping(e.ears.gone); err != nil {
				return heard, err
			}
			asked = true
		default:
			return heard, err
		}
		switch m := said.(type) {
		case *redis.Subscription:
			heard = true
			e.confirmed(m.Channel, strings.HasSuffix(m.Kind, "unsubscribe"))
		case *redis.Message:
			e.ears.message(e.node, m.Payload)
		}
	}
}

// connect makes a connection that listens on all channels. That they are confirmed, or why
// not, is what it receives.
func (e *ear) connect() (*redis.PubSub, error) {
	sub := e.client.Subscribe(e.ears.ctx) // contacts nobody yet
	sent := map[string]bool{}
	e.mu.Lock()
	renewals := e.renewals
	e.mu.Unlock()
	for {
		channel, more, err := e.next(sub, sent, renewals)
		if !more {
			return sub, cmp.Or(err, e.ears.ctx.Err())
		}
		if err := e.subscribe(e.ears.ctx, sub, channel); err != nil {
			return sub, err
		}
	}
}

// next is a channel that was not sent yet. If there is none sub is ready, unless there were
// renewals since it began to connect.
func (e *ear) next(sub *redis.PubSub, sent map[string]bool, renewals int) (channel string, more bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.renewals != renewals {
		return "", false, errReplaced
	}
	for channel := range e.channels {
		if !sent[channel] {
			sent[channel] = true
			return channel, true, nil
		}
	}
	if !e.closed {
		e.sub = sub
	}
	return "", false, nil
}

// subscribe asks for one channel: on a Cluster those of different slots cannot be asked for
// together.
func (e *ear) subscribe(ctx context.Context, sub *redis.PubSub, channel string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", conn.ErrGarbled, p)
		}
	}()
	if e.sharded {
		return sub.SSubscribe(ctx, channel)
	}
	return sub.Subscribe(ctx, channel)
}

// confirmed takes note that a channel is listened to; only now those who wait can ask for
// a place that they keep. Or that it is not any more: its slot has moved.
func (e *ear) confirmed(channel string, gone bool) {
	e.mu.Lock()
	_, wanted := e.channels[channel]
	switch {
	case gone:
		delete(e.channels, channel)
	case wanted:
		e.channels[channel] = true
	}
	e.mu.Unlock()
	switch {
	case gone && e.stale != nil:
		e.stale()
		e.ears.lost(e.node, channel)
	case wanted:
		e.ears.found(e.node, channel)
	}
}

func (e *ear) unused() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unneeded()
}

// unneeded reports that nobody has waited for long; mu is held.
func (e *ear) unneeded() bool {
	return !e.idle.IsZero() && e.ears.r.cfg.Clock.Now().Sub(e.idle) >= idleFor
}

func silent(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
