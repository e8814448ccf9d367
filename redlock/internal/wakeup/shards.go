package wakeup

import (
	"maps"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/redlock/internal/conn"
)

// shards is the source of a Cluster: one subscription to each shard that is in use. A message
// about a key comes from the shard that has it, on a channel in the key's slot.
type shards struct {
	subscriber *Subscriber
	node       int
	client     *redis.ClusterClient
	beside     func(master *redis.Client) *redis.Client

	mu        sync.Mutex
	all       map[*redis.Client]*subscription
	byChannel map[string]*subscription
	finding   map[string]bool // channels for which find runs
	closed    bool
}

func newShards(s *Subscriber, node int, client *redis.ClusterClient, beside func(*redis.Client) *redis.Client) *shards {
	return &shards{
		subscriber: s, node: node, client: client, beside: beside,
		all: map[*redis.Client]*subscription{}, byChannel: map[string]*subscription{}, finding: map[string]bool{},
	}
}

func (s *shards) channel(nodeKey string) string { return s.subscriber.sharded(nodeKey) }

// subscribe looks up the channel's shard again, even if the channel is subscribed to. Its slot
// may have moved, or the Cluster may have replaced the shard's master, which may be cut off and
// not know. The lane looks up the shard for each operation, too.
func (s *shards) subscribe(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.finding[channel] {
		return
	}
	if at := s.byChannel[channel]; at != nil && at.subscribed(channel) {
		at.subscribe(channel)
	}
	s.finding[channel] = true
	s.subscriber.running.Go(func() { s.find(channel) })
}

// find looks up a channel's shard, for which it may have to ask the Cluster. A channel is in
// the slot of its keys.
func (s *shards) find(channel string) {
	master, err := conn.MasterOf(s.subscriber.ctx, s.client, channel)
	if s.put(channel, master, err) {
		s.subscriber.lost(s.node, channel)
	}
}

// put subscribes to a channel at a master, the result of find. It returns true if the channel was
// subscribed to at another master, which no longer wakes the channel's waits.
func (s *shards) put(channel string, master *redis.Client, err error) (lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.finding, channel)
	if err != nil || s.closed {
		return false
	}
	before := s.byChannel[channel]
	lost = before != nil && before.subscribed(channel)
	at := s.all[master]
	if at == nil {
		s.forget()
		at = &subscription{
			subscriber: s.subscriber, node: s.node, client: s.beside(master), sharded: true, channels: map[string]bool{},
			stale: func() { s.client.ReloadState(s.subscriber.ctx) },
		}
		s.all[master] = at
	}
	if before != nil && before != at {
		before.unsubscribe(channel)
	}
	s.byChannel[channel] = at
	at.subscribe(channel)
	return lost && before != at
}

// forget drops the subscriptions to masters that the Cluster does not have any more. It runs
// before each new subscription, so there is at most one more than the Cluster has masters. A
// waiter subscribes again when it next asks its nodes. The caller holds mu.
func (s *shards) forget() {
	masters, err := conn.MastersOf(s.subscriber.ctx, s.client)
	if err != nil {
		return
	}
	for master, at := range s.all {
		if masters[master] {
			continue
		}
		delete(s.all, master)
		maps.DeleteFunc(s.byChannel, func(_ string, sub *subscription) bool { return sub == at })
		s.subscriber.running.Go(at.close) // it may have to wait for a write that is under way
	}
}

func (s *shards) subscribed(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byChannel[channel]
	return at != nil && at.subscribed(channel)
}

func (s *shards) renew(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for master, at := range s.all {
		if conn.Address(master.Options()) == addr {
			at.renew()
		}
	}
}

func (s *shards) rest(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.all {
		at.rest(now)
	}
}

func (s *shards) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, at := range s.all { // s.all does not change any more
		at.close()
	}
}
