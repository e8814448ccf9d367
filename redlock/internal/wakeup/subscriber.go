// Package wakeup hears the messages by which nodes wake waiters, and tell holders that
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
	// Woken reports that the node has woken the entry with this ticket. It returns false if
	// the node ought to know that the entry was given up.
	Woken(node int, ticket int64) bool
	// Second reports that a node has woken another entry, and the one with this ticket is
	// next.
	Second(ticket int64)
	// Over reports whether no message for the waiter can arrive any more.
	Over(now time.Time) bool
}

// Config is what a Subscriber needs to know.
type Config struct {
	// ID names the channels of the client, without their common prefix.
	ID          string
	Nodes       []*conn.Node
	NodeTimeout time.Duration
	Clock       clock.Clock
	Log         *asynclog.Log
	// Leave has a node remove the client's entry with this ticket. It is called for a message
	// to a wait that is over.
	Leave func(node int, nodeKey string, ticket int64)
}

// Subscriber hears messages for all waits and locks of a Redlock. Each server reports on the
// Redlock's own channel, so a Redlock hears only what is for its own waiters.
type Subscriber struct {
	Config
	clustered bool   // a node is a Cluster
	channel   string // on which a single server reports everything

	ctx     context.Context
	cancel  context.CancelFunc
	ended   context.Context // has ended from the start
	sources []source        // by node
	running sync.WaitGroup

	mu       sync.Mutex
	waits    map[string]Waiter            // by nodeKey
	on       map[string]map[string]Waiter // the same by channel of a Cluster, then by nodeKey
	finished map[string]Waiter            // the waits that ended last
	swept    time.Time                    // when finished was last looked through for old ones
	began    time.Time                    // when a wait began while there was no other
	reported []bool                       // nodes of which it was logged that they do not permit a subscription
	denied   []error                      // why nodes did not permit one while nobody waited; nil: they did
	locks    bool                         // there are kept locks, which need subscriptions too

	broken broken
}

const (
	// finishedSweep is the number of finished waits from which on it pays to look for those
	// that can be forgotten, and sweepPause how often that is done at the most.
	finishedSweep = 64
	sweepPause    = time.Second
)

// Youth is how long after the first wait the subscriptions may need to be confirmed.
const Youth = 50 * time.Millisecond

// source is the subscriptions to one node. Its methods do not block.
type source interface {
	// channel returns the channel on which messages for a key arrive.
	channel(nodeKey string) string
	// subscribe adds a channel, and subscribed reports whether messages on it arrive.
	subscribe(channel string)
	subscribed(channel string) bool
	// renew replaces the connection to an address, where another server is now.
	renew(addr string)
	// rest reports that nothing needs the node just now, close that nothing will again.
	rest(now time.Time)
	close()
}

// New makes a Subscriber. It connects to a node once a wait needs it.
func New(cfg Config) *Subscriber {
	s := &Subscriber{
		Config: cfg, channel: slot.WakePrefix + cfg.ID,
		waits: map[string]Waiter{}, on: map[string]map[string]Waiter{}, finished: map[string]Waiter{},
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

// Begin subscribes for a wait, until End.
func (s *Subscriber) Begin(nodeKey string, w Waiter) {
	s.mu.Lock()
	if len(s.waits) == 0 {
		s.began = s.Clock.Now()
	}
	s.waits[nodeKey] = w
	if s.clustered {
		channel := s.sharded(nodeKey)
		if s.on[channel] == nil {
			s.on[channel] = map[string]Waiter{}
		}
		s.on[channel][nodeKey] = w
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

// Subscribe makes sure that each node is subscribed to for a key. With a Cluster it looks for
// the key's shard again.
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

// End is called when a wait is over. Messages for it may still arrive, also while the lock is
// held that it won.
func (s *Subscriber) End(nodeKey string, w Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	if s.waits[nodeKey] == w {
		delete(s.waits, nodeKey)
		if s.clustered {
			channel := s.sharded(nodeKey)
			delete(s.on[channel], nodeKey)
			if len(s.on[channel]) == 0 {
				delete(s.on, channel)
			}
		}
	}
	s.rest(now)
	if len(s.finished) >= finishedSweep && now.Sub(s.swept) >= sweepPause {
		s.swept = now
		maps.DeleteFunc(s.finished, func(_ string, w Waiter) bool { return w.Over(now) })
	}
	s.finished[nodeKey] = w
}

// keepLocks records whether there are kept locks.
func (s *Subscriber) keepLocks(some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks = some
	s.rest(s.Clock.Now())
}

// rest lets the sources rest if nothing needs them. The caller holds mu.
func (s *Subscriber) rest(now time.Time) {
	if len(s.waits) == 0 && !s.locks {
		for _, source := range s.sources {
			source.rest(now)
		}
	}
}

// Young reports whether the first wait has only just begun, so that subscriptions may not be
// confirmed yet.
func (s *Subscriber) Young() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Clock.Now().Sub(s.began) < Youth
}

// message handles a node's message. If it wakes a wait that is over, the node is told to
// remove the entry.
func (s *Subscriber) message(node int, text string) {
	if s.broken.message(node, text) {
		return
	}
	wake, ok := protocol.ParseWake(text)
	if !ok {
		return // no client of this library has sent it
	}
	s.mu.Lock()
	w := s.waits[wake.NodeKey]
	if w == nil && !wake.Second {
		w = s.finished[wake.NodeKey]
	}
	s.mu.Unlock()
	switch {
	case wake.Second:
		if w != nil {
			w.Second(wake.Ticket)
		}
	case w == nil || !w.Woken(node, wake.Ticket):
		s.Leave(node, wake.NodeKey, wake.Ticket)
	}
}

// confirmed and lost tell the waits of one channel of a node that the node can wake them, or
// no longer can. Other waits are not told: each of them would ask the node for its queue entry
// again, so that many waits on a Cluster would cost it the square of their number.
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

func (s *Subscriber) lost(node int, channel string) {
	for _, w := range s.waitsOn(channel) {
		w.Unsubscribed(node)
	}
}

// waitsOn returns the waits that are woken on a channel.
func (s *Subscriber) waitsOn(channel string) []Waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := s.waits
	if channel != s.channel {
		waits = s.on[channel]
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

// Denied logs, once, that a node does not let the client queue. Waiters look at the node
// instead. It logs nothing before a wait needs the node: kept locks are renewed as ever.
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
		s.Log.Warn("node does not let us queue, waiting by looking", "node", s.Nodes[node].Addr, "error", errs.Scrub(err, "").Error())
	}
}

// sleep returns false if the Subscriber was closed meanwhile.
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

// Wait waits for the goroutines that Close has ended.
func (s *Subscriber) Wait() { s.running.Wait() }

// single is the source of a single server, which reports everything on one channel.
type single struct{ *subscription }

func (s single) channel(string) string { return s.subscriber.channel }
func (s single) renew(string)          { s.subscription.renew() }
