// Package conn carries operations to the nodes: to a single server, to the master that
// Sentinel names, or to the shards of a Cluster. A lane of package quorum hands it batches. It
// keeps one connection to each server, finds out which server is at the other end, and turns
// replies into votes.
package conn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
	"github.com/quorumlock/redlock/redlock/internal/voter"
)

// Config is the configuration that the connections of all nodes share.
type Config struct {
	NodeTimeout time.Duration
	Clock       clock.Clock
	KeyPrefix   string // the prefix of identity records' keys
}

// Node is one of the N nodes that vote. It is the quorum.Transport of its lane.
type Node struct {
	Addr    string // for errors
	Sharded bool   // the node is a Cluster
	quorum.Transport[protocol.Operation]

	server  *server  // nil: the node is a Cluster
	cluster *cluster // nil: the node is a single server
}

// NewNode makes a Node of a client. It returns an error that says why a client cannot be a
// node. It sends nothing. Identify must be called before the first operation.
func NewNode(client redis.UniversalClient, cfg Config) (n *Node, err error) {
	// A client that was not made by its constructor has no options to read.
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("is a %T that was not made by its constructor", client)
		}
	}()
	switch client := client.(type) {
	case *redis.Client:
		opt := client.Options()
		if opt.StreamingCredentialsProvider != nil {
			return nil, errStreaming
		}
		if opt.ReadTimeout <= 0 {
			return nil, ErrEndless
		}
		s := &server{client: client, cfg: cfg, sharing: opt.PoolSize == 1 || opt.MaxActiveConns == 1}
		return &Node{Addr: Address(opt), Transport: s, server: s}, nil
	case *redis.ClusterClient:
		opt := client.Options()
		if opt.StreamingCredentialsProvider != nil {
			return nil, errStreaming
		}
		if opt.ReadTimeout <= 0 {
			return nil, ErrEndless
		}
		if changesKeys(client) {
			return nil, errKeyHook
		}
		c := newCluster(client, cfg)
		return &Node{Addr: "cluster " + strings.Join(opt.Addrs, ","), Sharded: true, Transport: c, cluster: c}, nil
	case nil:
		return nil, fmt.Errorf("is nil")
	case *redis.Ring:
		return nil, fmt.Errorf("is a %T: its shards are not one keyspace with one master for each key", client)
	default:
		return nil, fmt.Errorf("is a %T: want a *redis.Client or a *redis.ClusterClient", client)
	}
}

// errStreaming refuses a client with streaming credentials. go-redis panics when a Conn of the
// client connects, as a Conn has no subscription to the credentials. The pool then loses the
// connection for good.
var errStreaming = errors.New("has a StreamingCredentialsProvider, with which go-redis cannot keep a connection for " +
	"one user of the client: use CredentialsProviderContext, and ConnMaxLifetime if credentials expire")

// ErrEndless refuses a client without a read timeout: a lane waits for a silent node as long as
// its client does. go-redis has no way to give a Conn another timeout and keep the client's
// hooks, one of which may change keys.
var ErrEndless = errors.New("has no ReadTimeout: set one, or leave the field at 0 for go-redis' default")

// Address returns the address of a client's server for messages.
func Address(opt *redis.Options) string {
	if opt.Addr == "FailoverClient" {
		return "sentinel-managed master" // go-redis does not reveal its address
	}
	return opt.Addr
}

// Identify sets the function that returns the voter.Server at an address of the node.
func (n *Node) Identify(server func(addr string) *voter.Server) {
	if n.cluster != nil {
		n.cluster.server = server
		return
	}
	s := n.server
	s.conn = pin(s.client, server(Address(s.client.Options())), s.cfg.KeyPrefix+protocol.RecordKey, s.cfg.Clock, s.cfg.NodeTimeout)
}

// WatchDials calls unreachable when a dial fails that an operation waits for, and reachable
// when any dial succeeds, until stop is called. go-redis dials five times before it returns an
// error. With a Cluster it does nothing.
func (n *Node) WatchDials(unreachable func(error), reachable func()) (stop func()) {
	if n.cluster != nil {
		return func() {}
	}
	return n.server.watchDials(unreachable, reachable)
}

// Client returns the client for subscriptions to a single server; nil for a Cluster.
func (n *Node) Client() *redis.Client {
	if n.server == nil {
		return nil
	}
	return Beside(n.server.client)
}

// Cluster returns the client of a Cluster; nil for a single server.
func (n *Node) Cluster() *redis.ClusterClient {
	if n.cluster == nil {
		return nil
	}
	return n.cluster.client
}

// Held returns how many connections to a Cluster's masters the lane holds, and how many clients
// for subscriptions there are. The node must be a Cluster. Tests use it.
func (n *Node) Held() (connections, clients int) {
	return len(n.cluster.conns), len(n.cluster.beside.clients)
}

// BesideMaster returns the client for subscriptions to a master of the Cluster; see Beside.
func (n *Node) BesideMaster(master *redis.Client) *redis.Client { return n.cluster.beside.of(master) }

// Beside returns a client for subscriptions, with the pools of client, and options of its own.
// If the server does not know maintenance notifications, go-redis writes to a client's options,
// under a lock that each Conn has for itself. So Beside must be called before the lane takes
// its Conn of the client.
func Beside(client *redis.Client) *redis.Client {
	return client.WithTimeout(client.Options().ReadTimeout)
}

// server carries operations to a single server, over one connection. It takes the connection
// from the client's pool for the first batch, and keeps it until it breaks or the lane rests.
type server struct {
	client     *redis.Client
	cfg        Config
	sharing    bool // the client has no connection to spare
	conn       *pinned
	connecting atomic.Bool // the batch under way needs a new connection
}

// Carry implements quorum.Transport.
func (s *server) Carry(ctx context.Context, batch []*call) {
	s.connecting.Store(s.conn.take())
	for _, c := range s.conn.exchange(ctx, batch) {
		c.Unsent(errElsewhere)
	}
	s.connecting.Store(false)
	if s.sharing {
		s.Rest()
	}
}

// Rest gives the connection back to its pool.
func (s *server) Rest() { s.conn.rest() }

func (s *server) watchDials(unreachable func(error), reachable func()) (stop func()) {
	return watchDials(s.client, func(err error) {
		switch {
		case err == nil: // the dial may be a subscription's, or the application's
			s.connecting.Store(false)
			reachable()
		case s.connecting.Load():
			unreachable(errs.Scrub(err, ""))
		}
	})
}
