package redlock

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// shards is the station of a Cluster: an ear for each shard that is in use. A message
// about a key comes from the shard that has it, on a channel in the key's slot.
type shards struct {
	ears   *ears
	node   int
	client *redis.ClusterClient
	beside func(master *redis.Client) *redis.Client

	mu      sync.Mutex
	all     map[*redis.Client]*ear
	where   map[string]*ear // by channel
	looking map[string]bool // channels whose shard is being looked up
	closed  bool
}

func listenToShards(client *redis.ClusterClient, beside func(*redis.Client) *redis.Client) func(e *ears, node int) station {
	return func(e *ears, node int) station {
		return &shards{
			ears: e, node: node, client: client, beside: beside,
			all: map[*redis.Client]*ear{}, where: map[string]*ear{}, looking: map[string]bool{},
		}
	}
}

func (s *shards) channel(name string) string { return wakePrefix + shardChannel(s.ears.id, name) }

// tune also finds the shard anew of a channel that is not heard: its slot may have moved.
func (s *shards) tune(name string) {
	channel := s.channel(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.where[channel]
	if s.closed || s.looking[channel] {
		return
	}
	if at != nil && at.hears(channel) {
		at.tune(channel)
		return
	}
	s.looking[channel] = true
	s.ears.running.Go(func() { s.find(name, channel) })
}

// find may have to ask the Cluster.
func (s *shards) find(name, channel string) {
	master, err := masterOf(s.ears.ctx, s.client, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.looking, channel)
	if err != nil || s.closed {
		return
	}
	at := s.all[master]
	if at == nil {
		at = &ear{
			ears: s.ears, node: s.node, client: s.beside(master), sharded: true, channels: map[string]bool{},
			stale: func() { s.client.ReloadState(s.ears.ctx) },
		}
		s.all[master] = at
	}
	if before := s.where[channel]; before != nil && before != at {
		before.untune(channel)
	}
	s.where[channel] = at
	at.tune(channel)
}

func (s *shards) hears(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	channel := s.channel(name)
	at := s.where[channel]
	return at != nil && at.hears(channel)
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
	for _, at := range s.all { // nobody changes it any more
		at.close()
	}
}
