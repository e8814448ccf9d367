package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// cluster carries commands to a Redis Cluster that acts as one node: each key
// has one master there. It pins a connection to each shard that is in use and
// sends the shards' parts of a batch side by side. A key's commands always go
// to the same shard, so their order holds; a slot that moves breaks it as a
// broken connection does.
type cluster struct {
	client *redis.ClusterClient
	conns  map[*redis.Client]*pinned
	beside *besides
	at     func(addr string) *server
}

func (c *cluster) Carry(ctx context.Context, batch []*call) {
	moved := c.carry(ctx, batch)
	if len(moved) == 0 {
		return
	}
	// MOVED means not executed: ask the new master, once, when the client has
	// learned who that is. ReloadState only begins to; until it has ended the
	// old master may be named again, and then the vote fails.
	// Connections to masters that have lost the slot are given back.
	c.client.ReloadState(ctx)
	c.Rest()
	clear(c.conns)
	for _, call := range c.carry(ctx, moved) {
		call.Unsent(errMoved)
	}
}

var errMoved = errors.New("the key's slot is moving")

func (c *cluster) carry(ctx context.Context, batch []*call) (moved []*call) {
	parts := map[*redis.Client][]*call{}
	var lost error
	for _, call := range batch {
		if lost != nil {
			call.Unsent(lost)
			continue
		}
		master, err := masterOf(ctx, c.client, call.Op().key.(string))
		if err != nil {
			// Nobody could be asked who the masters are: it will not be
			// different for the next key, and may take as long again.
			lost = scrub(err, "")
			call.Unsent(lost)
			continue
		}
		parts[master] = append(parts[master], call)
	}
	for master := range parts {
		if c.conns[master] == nil {
			c.beside.of(master)
			c.conns[master] = pin(master, c.at(address(master.Options())), "")
			c.conns[master].wire.sharded = true
		}
		c.conns[master].take()
	}
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	for master, part := range parts {
		conn := c.conns[master]
		wg.Go(func() {
			elsewhere := conn.exchange(ctx, part)
			mu.Lock()
			defer mu.Unlock()
			moved = append(moved, elsewhere...)
		})
	}
	wg.Wait()
	return moved
}

// masterOf never panics: a server's own words about its Cluster are input too.
func masterOf(ctx context.Context, client *redis.ClusterClient, key string) (m *redis.Client, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errGarbled, p)
		}
	}()
	return client.MasterForKey(ctx, key)
}

// Rest gives the connections back.
func (c *cluster) Rest() {
	for _, conn := range c.conns {
		conn.rest()
	}
}

// besides are the clients for ears, by the masters' own. Lane and ears meet here.
type besides struct {
	mu      sync.Mutex
	clients map[*redis.Client]*redis.Client
}

func (b *besides) of(master *redis.Client) *redis.Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clients[master] == nil {
		b.clients[master] = beside(master)
	}
	return b.clients[master]
}
