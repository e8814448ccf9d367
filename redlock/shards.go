package redlock

import (
	"maps"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/redlock/internal/conn"
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

func newShards(e *ears, node int, client *redis.ClusterClient, beside func(*redis.Client) *redis.Client) *shards {
	return &shards{
		ears: e, node: node, client: client, beside: beside,
		all: map[*redis.Client]*ear{}, where: map[string]*ear{}, looking: map[string]bool{},
	}
}

func (s *shards) channel(name string) string { return s.ears.sharded(name) }

// tune also finds the channel's shard anew, and if the channel is heard as well: its slot may
// have moved, or its master been deposed by a Cluster that it has lost sight of. The lane asks
// its client each time, too.
func (s *shards) tune(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.looking[channel] {
		return
	}
	if at := s.where[channel]; at != nil && at.hears(channel) {
		at.tune(channel)
	}
	s.looking[channel] = true
	s.ears.running.Go(func() { s.find(channel) })
}

// find may have to ask the Cluster. A channel is in the slot of its keys.
func (s *shards) find(channel string) {
	master, err := conn.MasterOf(s.ears.ctx, s.client, channel)
	if s.put(channel, master, err) {
		s.ears.lost(s.node, channel)
	}
}

// put has a channel listened to at a master. It reports true if the channel was heard at
// another one: those who wait are not woken by that one any more.
func (s *shards) put(channel string, master *redis.Client, err error) (lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.looking, channel)
	if err != nil || s.closed {
		return false
	}
	before := s.where[channel]
	lost = before != nil && before.hears(channel)
	at := s.all[master]
	if at == nil {
		s.forget()
		at = &ear{
			ears: s.ears, node: s.node, client: s.beside(master), sharded: true, channels: map[string]bool{},
			stale: func() { s.client.ReloadState(s.ears.ctx) },
		}
		s.all[master] = at
	}
	if before != nil && before != at {
		before.untune(channel)
	}
	s.where[channel] = at
	at.tune(channel)
	return lost && before != at
}

// forget gives up the ears for masters that the Cluster does not have any more; mu is held.
// It runs before there is a new ear, so there is at most one more than the Cluster has
// masters. A waiter has its channel looked up again when it next asks its nodes.
func (s *shards) forget() {
	masters, err := conn.MastersOf(s.ears.ctx, s.client)
	if err != nil {
		return
	}
	for master, at := range s.all {
		if masters[master] {
			continue
		}
		delete(s.all, master)
		maps.DeleteFunc(s.where, func(_ string, e *ear) bool { return e == at })
		s.ears.running.Go(at.close) // it may have to wait for a write that is under way
	}
}

func (s *shards) hears(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.where[channel]
	return at != nil && at.hears(channel)
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
	for _, at := range s.all { // nobody changes it any more
		at.close()
	}
}
