// Package wakeup receives the messages by which nodes wake waiters, and tell holders that
// ForceRelease has broken their locks. It keeps one subscription to each server, and to each
// shard of a Cluster that is in use.
package wakeup

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/redlock/internal/asynclog"
	"github.com/quorumlock/redlock/redlock/internal/conn"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Waiter is a wait for a key. Its methods must not block, nor call the Subscriber.
type Waiter interface {
	// Subscribed reports that the node can wake the waiter from now on. Unsubscribed reports
	// that it no longer can.
	Subscribed(node int)
	Unsubscribed(node int)
	// Woken reports that the node has woken the entry with this ticket. It returns false if the
	// entry was given up, so that the node ought to remove it.
	Woken(now time.Time, node int, ticket int64) bool
	// Second reports that a node has woken the first waiter of the queue, and that the entry with
	// this ticket is the second.
	Second(now time.Time, ticket int64)
	// Expires reports that the key, for which the entry with this ticket is the first, expires on
	// the node after d, as its holder has given it up.
	Expires(now time.Time, node int, ticket int64, d time.Duration)
	// Forgettable reports whether the wait is over for so long that no message for it can arrive
	// any more, unless the node was not told of the end.
	Forgettable(now time.Time) bool
}

// Config configures a Subscriber.
type Config struct {
	// ID names the channels of the client, without their common prefix.
	ID          string
	Nodes       []*conn.Node
	NodeTimeout time.Duration
	Clock       clock.Clock
	Log         *asynclog.Log
	// Leave makes a node remove the client's entry with this ticket. It is called when a
	// message comes for a wait that is over.
	Leave func(node int, nodeKey string, ticket int64)
}

// Subscriber receives messages for all waits and locks of a Redlock. Nodes wake its waiters on
// channels of its own, so it receives no wake-ups of other clients.
type Subscriber struct {
	Config
	clustered bool   // a node is a Cluster
	channel   string // the channel on which a single server wakes all waiters

	ctx     context.Context
	cancel  context.CancelFunc
	ended   context.Context // a context that has ended from the start
	sources []source        // the subscriptions to each node
	running sync.WaitGroup

	mu        sync.Mutex
	waits     map[string]Waiter            // by nodeKey
	byChannel map[string]map[string]Waiter // the same by a Cluster's channel, then by nodeKey
	finished  map[string]Waiter            // by nodeKey: its last wait that has ended
	swept     time.Time                    // when finished was last searched for waits to forget
	began     time.Time                    // when a wait last began while there was no other
	reported  []bool                       // by node: a denial was logged
	denied    []error                      // by node: a denial that was not logged; nil: none
	keptLocks bool                         // there are kept locks, which need subscriptions too

	broken broken
}

const (
	// finishedSweep is the number of finished waits from which on it pays to look for waits
	// that can be forgotten. sweepPause is the least time between two such searches.
	finishedSweep = 64
	sweepPause    = time.Second
)

// warmUp is how long subscriptions may take to be confirmed after the first wait began.
const warmUp = 50 * time.Millisecond

// source holds the subscriptions to one node. Its methods do not block.
type source interface {
	// channel returns the channel on which wake-ups for a key arrive.
	channel(nodeKey string) string
	// subscribe adds a channel, and subscribed reports whether messages on it arrive.
	subscribe(channel string)
	subscribed(channel string) bool
	// renew replaces the connection to an address, where another server is now.
	renew(addr string)
	// rest reports that nothing needs the node just now. close ends the subscriptions for good.
	rest(now time.Time)
	close()
}

// New makes a Subscriber. It connects to a node once a wait needs it.
func New(cfg Config) *Subscriber {
	s := &Subscriber{
		Config: cfg, channel: slot.WakePrefix + cfg.ID,
		waits: map[string]Waiter{}, byChannel: map[string]map[string]Waiter{}, finished: map[string]Waiter{},
		reported: make([]bool, len(cfg.Nodes)), denied: make([]error, len(cfg.Nodes)),
	}
	s.broken.subscriber = s
	s.ctx, s.cancel = context.WithCancel(context.Background())
	ended, end := context.WithCancel(s.ctx)
	end()
	s.ended = ended
	for i, n := range cfg.Nodes {
		s.clustered = s.clustered || n.Sharded
		if cluster := n.Cluster(); cluster != nil {
			s.sources = append(s.sources, newShards(s, i, cluster, n.BesideMaster))
		} else {
			s.sources = append(s.sources, single{&subscription{subscriber: s, node: i, client: n.Client(), channels: map[string]bool{}}})
		}
	}
	return s
}

// Clustered reports whether a node is a Cluster.
func (s *Subscriber) Clustered() bool { return s.clustered }

// Name returns the names under which the client queues for a key, on a single server and on a
// shard of a Cluster: its channel and the key. sharded is nil if no node is a Cluster.
func (s *Subscriber) Name(nodeKey string) (single, sharded any) {
	if s.clustered {
		sharded = protocol.ShardChannel(s.ID, nodeKey) + " " + nodeKey
	}
	return s.ID + " " + nodeKey, sharded
}

// Begin subscribes for a wait, and passes the messages for its key to it, until End.
func (s *Subscriber) Begin(nodeKey string, w Waiter) {
	s.mu.Lock()
	if len(s.waits) == 0 {
		s.began = s.Clock.Now()
	}
	s.waits[nodeKey] = w
	if s.clustered {
		channel := s.sharded(nodeKey)
		if s.byChannel[channel] == nil {
			s.byChannel[channel] = map[string]Waiter{}
		}
		s.byChannel[channel][nodeKey] = w
	}
	denied := slices.Clone(s.denied)
	s.mu.Unlock()
	for node, err := range denied {
		if err != nil {
			s.Denied(node, err)
		}
	}
	s.Subscribe(nodeKey)
}

// sharded returns the channel on which a Cluster's messages for a key arrive.
func (s *Subscriber) sharded(nodeKey string) string {
	return slot.WakePrefix + protocol.ShardChannel(s.ID, nodeKey)
}

// Subscribe subscribes to each node's channel for a key, unless it is subscribed to. With a
// Cluster it looks up the key's shard again.
func (s *Subscriber) Subscribe(nodeKey string) {
	for _, source := range s.sources {
		source.subscribe(source.channel(nodeKey))
	}
}

// Subscribed reports whether a node's messages for a key arrive.
func (s *Subscriber) Subscribed(node int, nodeKey string) bool {
	source := s.sources[node]
	return source.subscribed(source.channel(nodeKey))
}

// End is called when a wait is won or given up. Messages for it may still arrive, even while the
// lock that it won is held.
func (s *Subscriber) End(nodeKey string, w Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	if s.waits[nodeKey] == w {
		delete(s.waits, nodeKey)
		if s.clustered {
			channel := s.sharded(nodeKey)
			delete(s.byChannel[channel], nodeKey)
			if len(s.byChannel[channel]) == 0 {
				delete(s.byChannel, channel)
			}
		}
	}
	s.rest(now)
	if len(s.finished) >= finishedSweep && now.Sub(s.swept) >= sweepPause {
		s.swept = now
		maps.DeleteFunc(s.finished, func(_ string, w Waiter) bool { return w.Forgettable(now) })
	}
	s.finished[nodeKey] = w
}

// keepLocks records whether there are kept locks.
func (s *Subscriber) keepLocks(some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keptLocks = some
	s.rest(s.Clock.Now())
}

// rest lets the sources rest if nothing needs them. The caller holds mu.
func (s *Subscriber) rest(now time.Time) {
	if len(s.waits) == 0 && !s.keptLocks {
		for _, source := range s.sources {
			source.rest(now)
		}
	}
}

// WarmUp returns how long subscriptions may take to be confirmed, if the first wait has only just
// begun; otherwise zero.
func (s *Subscriber) WarmUp() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Clock.Now().Sub(s.began) < warmUp {
		return warmUp
	}
	return 0
}

// message handles a node's message. If the message wakes a wait that is over, the node is asked
// to remove the entry.
func (s *Subscriber) message(node int, text string) {
	if s.broken.message(node, text) {
		return
	}
	wake, ok := protocol.ParseWake(text)
	if !ok {
		return // no script of this library has sent it
	}
	s.mu.Lock()
	w := s.waits[wake.NodeKey]
	if w == nil && !wake.Second && wake.Expires == 0 {
		w = s.finished[wake.NodeKey]
	}
	s.mu.Unlock()
	now := s.Clock.Now()
	switch {
	case wake.Expires > 0:
		if w != nil {
			w.Expires(now, node, wake.Ticket, wake.Expires)
		}
	case wake.Second:
		if w != nil {
			w.Second(now, wake.Ticket)
		}
	case w == nil || !w.Woken(now, node, wake.Ticket):
		s.Leave(node, wake.NodeKey, wake.Ticket)
	}
}

// confirmed reports to the waits of a channel that the node can wake them. Other waits get no
// report: each of them would ask the node for its queue entry again, so that many waits on a
// Cluster would cost it the square of their number.
func (s *Subscriber) confirmed(node int, channel string) {
	s.mu.Lock()
	s.denied[node] = nil
	s.mu.Unlock()
	if s.sources[node].subscribed(channel) {
		for _, w := range s.waitsOn(channel) {
			w.Subscribed(node)
		}
	}
}

// lost reports to the waits of a channel that the node can no longer wake them.
func (s *Subscriber) lost(node int, channel string) {
	for _, w := range s.waitsOn(channel) {
		w.Unsubscribed(node)
	}
}

// waitsOn returns the waits whose messages come on a channel.
func (s *Subscriber) waitsOn(channel string) []Waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := s.waits
	if channel != s.channel {
		waits = s.byChannel[channel]
	}
	all := make([]Waiter, 0, len(waits))
	for _, key := range slices.Sorted(maps.Keys(waits)) { // so that a simulation can be repeated
		all = append(all, waits[key])
	}
	return all
}

// Renew replaces the connection to an address of a node, where its lane has met another server
// than before.
func (s *Subscriber) Renew(node int, addr string) { s.sources[node].renew(addr) }

// Denied logs, once, that a node does not let the client queue or subscribe. It logs nothing before
// a wait needs the node: kept locks, which also subscribe, are renewed all the same.
func (s *Subscriber) Denied(node int, err error) {
	s.mu.Lock()
	reported := s.reported[node]
	if len(s.waits) == 0 {
		s.denied[node] = err
		reported = true
	} else {
		s.reported[node] = true
	}
	s.mu.Unlock()
	if !reported {
		s.Log.Warn("queue_denied", "node does not let us queue, waiting by looking", "node", s.Nodes[node].Addr, "error", errs.Scrub(err, "").Error())
	}
}

// sleep waits for d. It returns false if the Subscriber was closed meanwhile.
func (s *Subscriber) sleep(d time.Duration) bool {
	timer := s.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-s.ctx.Done():
		return false
	}
}

// Close ends all subscriptions. Wait returns when they have ended, which may take as long as a
// silent node's handshake.
func (s *Subscriber) Close() {
	s.cancel()
	s.broken.close()
	for _, source := range s.sources {
		source.close()
	}
}

// Wait returns when all goroutines have ended, after Close.
func (s *Subscriber) Wait() { s.running.Wait() }

// single is the source of a single server, which wakes all waiters on one channel.
type single struct{ *subscription }

func (s single) channel(string) string { return s.subscriber.channel }
func (s single) renew(string)          { s.subscription.renew() }
