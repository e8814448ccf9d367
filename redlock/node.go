package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/voter"
)

// node is one of the N masters: a name for errors and a lane's way to it.
type node struct {
	addr    string
	carrier quorum.Carrier[command]
	meet    func(at func(addr string) *voter.Server) // tells the carrier whom it talks to
	attach  func(unreachable func(error), reachable func()) (detach func())
	station func(e *ears, node int) station // listens to it
	sharded bool
}

// newNode makes a node of a client, or says why that client cannot be one.
func newNode(client redis.UniversalClient, cfg Config) (n node, err error) {
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
			return node{}, errStreaming
		}
		if opt.ReadTimeout <= 0 {
			return node{}, errEndless
		}
		s := &standalone{client: client, sharing: opt.PoolSize == 1 || opt.MaxActiveConns == 1}
		meet := func(at func(string) *voter.Server) {
			s.conn = pin(client, at(address(opt)), cfg.KeyPrefix+voter.RecordKey, cfg.Clock, cfg.NodeTimeout)
		}
		return node{addr: address(opt), carrier: s, meet: meet, attach: s.attach, station: listenTo(client)}, nil
	case *redis.ClusterClient:
		if client.Options().StreamingCredentialsProvider != nil {
			return node{}, errStreaming
		}
		if client.Options().ReadTimeout <= 0 {
			return node{}, errEndless
		}
		if changesKeys(client) {
			return node{}, errKeyHook
		}
		c := &cluster{client: client, clock: cfg.Clock, patience: cfg.NodeTimeout, conns: map[*redis.Client]*pinned{}, beside: &besides{clients: map[*redis.Client]*redis.Client{}}}
		meet := func(at func(string) *voter.Server) { c.at = at }
		return node{addr: "cluster " + strings.Join(client.Options().Addrs, ","), carrier: c, meet: meet, station: listenToShards(client, c.beside.of), sharded: true}, nil
	case nil:
		return node{}, fmt.Errorf("is nil")
	case *redis.Ring:
		return node{}, fmt.Errorf("is a %T: its shards are not one keyspace with one master for each key", client)
	default:
		return node{}, fmt.Errorf("is a %T: want a *redis.Client or a *redis.ClusterClient", client)
	}
}

// errStreaming refuses a client: go-redis panics when a Conn of it connects, as a Conn has no
// subscription to the credentials, and the connection is then lost to the pool for good.
var errStreaming = errors.New("has a StreamingCredentialsProvider, with which go-redis cannot keep a connection for " +
	"one user of the client: use CredentialsProviderContext, and ConnMaxLifetime if credentials expire")

// errEndless: a lane waits for a silent node as long as its client does. go-redis has no
// way to give a Conn another timeout and keep the client's hooks, one of which may change
// keys.
var errEndless = errors.New("has no ReadTimeout: set one, or leave the field at 0 for go-redis' default")

func address(opt *redis.Options) string {
	if opt.Addr == "FailoverClient" {
		return "sentinel-managed master" // go-redis does not tell its name
	}
	return opt.Addr
}

// standalone carries commands to one server over one connection, which it pins:
// it takes it from the client's pool for the first batch and keeps it until it
// breaks or the lane rests.
type standalone struct {
	client     *redis.Client
	sharing    bool // the client has no connection to spare
	conn       *pinned
	connecting atomic.Bool // the batch under way has to get a connection first
}

func (s *standalone) Carry(ctx context.Context, batch []*call) {
	s.connecting.Store(s.conn.take())
	for _, c := range s.conn.exchange(ctx, batch) {
		c.Unsent(errElsewhere)
	}
	s.connecting.Store(false)
	if s.sharing {
		s.Rest()
	}
}

// Rest gives the connection back.
func (s *standalone) Rest() { s.conn.rest() }

// attach lets the lane know of refused dials at once: go-redis dials five times
// before it says so.
func (s *standalone) attach(unreachable func(error), reachable func()) (detach func()) {
	return watchDials(s.client, func(err error) {
		switch {
		case err == nil: // whoever's: a subscription's, or the application's
			s.connecting.Store(false)
			reachable()
		case s.connecting.Load():
			unreachable(errs.Scrub(err, ""))
		}
	})
}
