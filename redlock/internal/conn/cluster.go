package conn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/voter"
)

// cluster carries commands to a Redis Cluster that acts as one node: each key has one master
// there. It pins a connection to each shard that is in use, and sends the shards' parts of a
// batch side by side. A key's commands always go to the same shard, so they keep their order. A
// slot that moves breaks the order, as a broken connection does.
type cluster struct {
	client *redis.ClusterClient
	cfg    Config
	conns  map[*redis.Client]*pinned
	beside *besides
	server func(addr string) *voter.Server
}

func newCluster(client *redis.ClusterClient, cfg Config) *cluster {
	return &cluster{
		client: client, cfg: cfg, conns: map[*redis.Client]*pinned{},
		beside: &besides{clients: map[*redis.Client]*redis.Client{}},
	}
}

// Carry implements quorum.Transport.
func (c *cluster) Carry(ctx context.Context, batch []*call) {
	moved := c.carry(ctx, batch)
	if len(moved) == 0 {
		return
	}
	// MOVED means that the command was not executed. So the new master is asked, once.
	// ReloadState only begins to look up the masters: until that has ended the client may return
	// the old one again, and then the vote fails. Rest gives back the connections, also those to
	// masters that have lost the slot.
	c.client.ReloadState(ctx)
	c.Rest()
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
		master, err := MasterOf(ctx, c.client, call.Op().NodeKey.(string))
		if err != nil {
			// No server could name the masters. For the next key none could either, and to find
			// that out may take as long again.
			lost = errs.Scrub(err, "")
			call.Unsent(lost)
			continue
		}
		parts[master] = append(parts[master], call)
	}
	for master := range parts {
		if c.conns[master] == nil && len(c.conns) > 0 {
			c.forget(ctx, parts)
			break
		}
	}
	for master := range parts {
		if c.conns[master] == nil {
			c.beside.of(master)
			c.conns[master] = pin(master, c.server(Address(master.Options())), "", c.cfg.Clock, c.cfg.NodeTimeout)
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

// forget drops the connections to masters that the Cluster does not have any more, unless the
// batch is for them. It runs before the lane connects to a new master. So there are at most the
// connections to the Cluster's masters and to the masters of one batch.
func (c *cluster) forget(ctx context.Context, parts map[*redis.Client][]*call) {
	masters, err := MastersOf(ctx, c.client)
	if err != nil {
		return
	}
	var server *voter.Server // any, to find the guard and the node's number
	for master, conn := range c.conns {
		server = conn.check.server
		if !masters[master] && parts[master] == nil {
			conn.drop()
			delete(c.conns, master)
		}
	}
	c.beside.keep(c.conns)
	if server != nil {
		addrs := map[string]bool{}
		for master := range masters {
			addrs[Address(master.Options())] = true
		}
		for master := range parts {
			addrs[Address(master.Options())] = true
		}
		server.Guard().KeepMasters(server.Node(), addrs)
	}
}

// MastersOf returns the masters of the Cluster, as far as the client knows. It sends nothing,
// as the client has just looked up a master, and it takes some milliseconds.
func MastersOf(ctx context.Context, client *redis.ClusterClient) (map[*redis.Client]bool, error) {
	masters := map[*redis.Client]bool{}
	for _, tag := range slot.Tags() {
		master, err := MasterOf(ctx, client, tag)
		if err != nil {
			return nil, err
		}
		masters[master] = true
	}
	return masters, nil
}

// MasterOf returns the client of the master that has a key. A server's description of its
// Cluster is input too: if go-redis panics on it, MasterOf returns ErrGarbled.
func MasterOf(ctx context.Context, client *redis.ClusterClient, key string) (m *redis.Client, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrGarbled, p)
		}
	}()
	return client.MasterForKey(ctx, key)
}

// Rest gives the connections back to their pools.
func (c *cluster) Rest() {
	for _, conn := range c.conns {
		conn.rest()
	}
}

// besides holds the clients for subscriptions, by the client of each master. The lane and the
// subscriptions share it. The lane makes a master's entry before it pins a connection to the
// master, and the entry stays for as long as that connection does; see Beside. A subscription
// keeps the client that it got.
type besides struct {
	mu      sync.Mutex
	clients map[*redis.Client]*redis.Client
}

func (b *besides) of(master *redis.Client) *redis.Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clients[master] == nil {
		b.clients[master] = Beside(master)
	}
	return b.clients[master]
}

// keep forgets the clients for masters to which the lane has no connection.
func (b *besides) keep(conns map[*redis.Client]*pinned) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.clients, func(master, _ *redis.Client) bool { return conns[master] == nil })
}
