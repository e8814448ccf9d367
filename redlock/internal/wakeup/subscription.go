package wakeup

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

// subscription receives one server's messages on a connection of its own. It connects when a
// wait or a kept lock needs it, and disconnects when none has needed it for a while. A connection
// that breaks is replaced. Messages are lost meanwhile, so waits then ask the node again.
//
// go-redis' PubSub replaces a connection by itself, under a lock that Close needs too, and
// panics with that lock held on a reply that is no message. So it gets a live context while the
// subscription connects, when nothing else uses it, and one that has ended after that.
type subscription struct {
	subscriber *Subscriber
	node       int
	client     *redis.Client // made by conn.Beside
	sharded    bool
	stale      func() // called when the server says that a slot is not its own; nil: it has no slots

	mu       sync.Mutex
	channels map[string]bool // the channels to subscribe to; true: the server has confirmed it
	sub      *redis.PubSub   // nil: not connected
	renewals int             // how often renew was called
	running  bool
	closed   bool
	idle     time.Time // since when no wait or kept lock needs it; zero: one does
}

const (
	// quietFor is how long a connection may be silent before it is tested. A connection that was
	// not needed for idleFor is given up.
	quietFor = 5 * time.Second
	idleFor  = 10 * time.Second
	// firstPause is the pause before a subscription is tried again. It doubles up to
	// lastPause. If the server does not permit it, the pause is conn.RetryDenied.
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

var errReplaced = errors.New("another server has taken over")

// subscribe adds a channel.
func (s *subscription) subscribe(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = time.Time{}
	if s.closed {
		return
	}
	if _, known := s.channels[channel]; !known {
		s.channels[channel] = false
		if sub := s.sub; sub != nil {
			// If this fails the connection is broken, and the next one has the channel too.
			s.subscriber.running.Go(func() { _ = s.send(s.subscriber.ended, sub, channel) })
		}
	}
	if !s.running {
		s.running = true
		s.subscriber.running.Go(s.run)
	}
}

// unsubscribe drops a channel, from the next connection on.
func (s *subscription) unsubscribe(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.channels, channel)
}

// subscribed reports whether messages on the channel arrive.
func (s *subscription) subscribed(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[channel]
}

// rest reports that nothing needs the subscription just now.
func (s *subscription) rest(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = now
}

// close ends the subscription. A handshake that is under way ends first.
func (s *subscription) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.sub != nil {
		_ = s.sub.Close()
	}
}

// renew replaces the connection, as the node's lane has met another server than before. The
// server of the old connection may live on without the node's clients: a master that was
// deposed, or whose address now leads elsewhere. It would answer PING and report no release.
// Both connections are made through one client, so the next one leads to where the lane's
// does. A connection that is being made may lead to either.
func (s *subscription) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewals++
	if sub := s.sub; sub != nil && !s.closed {
		s.subscriber.running.Go(func() { _ = sub.Close() }) // it may wait for a write
	}
}

// run keeps the subscription up until nothing needs it.
func (s *subscription) run() {
	pause := time.Duration(0)
	for {
		confirmed, err := s.listen()
		s.disconnected()
		if s.done() {
			return
		}
		switch {
		case conn.Moved(err), errs.Says(err, "CROSSSLOT"):
			s.forget()
			pause = min(max(2*pause, firstPause), lastPause)
		case conn.Denied(err):
			s.subscriber.Denied(s.node, err)
			pause = conn.RetryDenied
		case confirmed && !errs.Answered(err):
			pause = firstPause
		default: // also a refusal that passes: a script is running, or there are too many clients
			pause = min(max(2*pause, firstPause), lastPause)
		}
		if !s.subscriber.sleep(pause) {
			return
		}
	}
}

// forget drops all channels, as one of them belongs to another server now. Waiters subscribe
// again.
func (s *subscription) forget() {
	s.mu.Lock()
	clear(s.channels)
	s.mu.Unlock()
	if s.stale != nil {
		s.stale()
	}
}

// done reports whether the subscription is no longer needed. If so, run ends.
func (s *subscription) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.unneeded() {
		s.running = false
		clear(s.channels)
		return true
	}
	return false
}

// disconnected records that the connection broke. It reports that to the waits of confirmed
// channels only: nothing has changed for the others, however often the server cannot be
// reached.
func (s *subscription) disconnected() {
	s.mu.Lock()
	s.sub = nil
	var lost []string
	for channel, confirmed := range s.channels {
		if confirmed {
			s.channels[channel] = false
			lost = append(lost, channel)
		}
	}
	s.mu.Unlock()
	slices.Sort(lost) // so that a simulation can be repeated
	for _, channel := range lost {
		s.subscriber.lost(s.node, channel)
	}
}

// listen connects, and passes messages on until the connection breaks or is not needed.
// confirmed reports whether the server accepted a subscription.
func (s *subscription) listen() (confirmed bool, err error) {
	var sub *redis.PubSub
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", conn.ErrGarbled, p) // sub's lock may be held for ever
		} else if sub != nil {
			_ = sub.Close()
		}
	}()
	if sub, err = s.connect(); err != nil {
		return false, err
	}
	tested := false
	for {
		patience := quietFor
		if tested || !confirmed {
			patience = min(max(time.Second, s.subscriber.NodeTimeout), quietFor)
		}
		received, err := sub.ReceiveTimeout(s.subscriber.ended, patience)
		switch {
		case err == nil:
			tested = false
		case timedOut(err) && confirmed && !tested:
			if s.unused() {
				return confirmed, nil
			}
			if err := sub.Ping(s.subscriber.ended); err != nil {
				return confirmed, err
			}
			tested = true
		default:
			return confirmed, err
		}
		switch m := received.(type) {
		case *redis.Subscription:
			confirmed = true
			s.confirmed(m.Channel, strings.HasSuffix(m.Kind, "unsubscribe"))
		case *redis.Message:
			s.subscriber.message(s.node, m.Payload)
		}
	}
}

// connect makes a connection and subscribes to all channels. The confirmations, or an error in
// their place, are received later.
func (s *subscription) connect() (*redis.PubSub, error) {
	sub := s.client.Subscribe(s.subscriber.ctx) // does not connect yet
	sent := map[string]bool{}
	s.mu.Lock()
	renewals := s.renewals
	s.mu.Unlock()
	for {
		channel, more, err := s.unsent(sub, sent, renewals)
		if !more {
			return sub, cmp.Or(err, s.subscriber.ctx.Err())
		}
		if err := s.send(s.subscriber.ctx, sub, channel); err != nil {
			return sub, err
		}
	}
}

// unsent returns a channel that was not sent yet. If there is none, sub is ready and is used
// from now on. If renew was called since sub began to connect, unsent returns an error.
func (s *subscription) unsent(sub *redis.PubSub, sent map[string]bool, renewals int) (channel string, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renewals != renewals {
		return "", false, errReplaced
	}
	for channel := range s.channels {
		if !sent[channel] {
			sent[channel] = true
			return channel, true, nil
		}
	}
	if !s.closed {
		s.sub = sub
	}
	return "", false, nil
}

// send subscribes to one channel. A Cluster does not accept channels of different slots in one
// command.
func (s *subscription) send(ctx context.Context, sub *redis.PubSub, channel string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", conn.ErrGarbled, p)
		}
	}()
	if s.sharded {
		return sub.SSubscribe(ctx, channel)
	}
	return sub.Subscribe(ctx, channel)
}

// confirmed records that the server has confirmed a channel: only now can waiters ask for
// entries that they keep. gone reports that it has ended the channel instead, as its slot has
// moved.
func (s *subscription) confirmed(channel string, gone bool) {
	s.mu.Lock()
	_, wanted := s.channels[channel]
	switch {
	case gone:
		delete(s.channels, channel)
	case wanted:
		s.channels[channel] = true
	}
	s.mu.Unlock()
	switch {
	case gone && s.stale != nil:
		s.stale()
		s.subscriber.lost(s.node, channel)
	case wanted:
		s.subscriber.confirmed(s.node, channel)
	}
}

func (s *subscription) unused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unneeded()
}

// unneeded reports whether the subscription was not needed for idleFor. The caller holds mu.
func (s *subscription) unneeded() bool {
	return !s.idle.IsZero() && s.subscriber.Clock.Now().Sub(s.idle) >= idleFor
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
