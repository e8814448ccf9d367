package redlock

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/quorum"
)

// node is one of the N masters: a name for errors and a lane's way to it.
type node struct {
	addr    string
	carrier quorum.Carrier[*command]
	attach  func(unreachable func(error), reachable func()) (detach func())
}

// newNode makes a node of a client, or says why that client cannot be one.
func newNode(client redis.UniversalClient, readBound time.Duration) (n node, err error) {
	// A client that was not made by its constructor has no options to read.
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("is a %T that was not made by its constructor", client)
		}
	}()
	switch client := client.(type) {
	case *redis.Client:
		s := &standalone{client: client, bound: bound(client.Options().ReadTimeout, readBound)}
		return node{addr: address(client.Options()), carrier: s, attach: s.attach}, nil
	case *redis.ClusterClient:
		c := &cluster{client: client, bound: bound(client.Options().ReadTimeout, readBound)}
		return node{addr: "cluster " + strings.Join(client.Options().Addrs, ","), carrier: c}, nil
	case nil:
		return node{}, fmt.Errorf("is nil")
	case *redis.Ring:
		return node{}, fmt.Errorf("is a %T: its shards are not one keyspace with one master for each key", client)
	default:
		return node{}, fmt.Errorf("is a %T: want a *redis.Client or a *redis.ClusterClient", client)
	}
}

// bound is how long a lane reads on for a reply: as long as the client itself
// would, but no longer than ours, so that Close comes to an end and a node
// behind a dead link is dialled again.
func bound(clients, ours time.Duration) time.Duration {
	if clients > 0 {
		return min(clients, ours)
	}
	return ours
}

// readBound is the longest that a lane waits for a reply: a second, or twice a
// NodeTimeout that is longer than half of that.
func readBound(nodeTimeout time.Duration) time.Duration {
	return max(time.Second, 2*nodeTimeout)
}

func address(opt *redis.Options) string {
	if opt.Addr == "FailoverClient" {
		return "sentinel-managed master" // go-redis does not tell its name
	}
	return opt.Addr
}

// standalone carries commands to one server over one connection, which it pins:
// it takes it from the client's pool for the first batch and keeps it until it
// breaks or the lane rests. What breaks is never replaced in silence in the
// middle of a batch, so no command is on the wire twice.
type standalone struct {
	client     *redis.Client
	bound      time.Duration
	conn       *redis.Conn
	connecting atomic.Bool // the batch under way has to get a connection first
}

func (s *standalone) Carry(ctx context.Context, batch []*call) {
	if s.conn == nil {
		// WithTimeout shares the client's pool and hooks. It is asked for each
		// time, so that hooks which were added since count too.
		s.conn = s.client.WithTimeout(s.bound).Conn()
		s.connecting.Store(true)
	}
	ok, _ := exchange(ctx, s.conn, batch)
	s.connecting.Store(false)
	if !ok {
		s.Rest()
	}
}

// Rest gives the connection back, or closes it if it broke.
func (s *standalone) Rest() {
	if s.conn != nil {
		_ = s.conn.Close() // it is the pool's now, either way
		s.conn = nil
	}
}

// attach lets the lane know of refused dials at once: go-redis dials five times
// before it says so.
func (s *standalone) attach(unreachable func(error), reachable func()) (detach func()) {
	return watchDials(s.client, func(err error) {
		switch {
		case !s.connecting.Load():
		case err != nil:
			unreachable(scrub(err, ""))
		default:
			s.connecting.Store(false)
			reachable()
		}
	})
}

// exchange sends the batch over the connection and answers its calls, but for
// those that a Cluster shard sent elsewhere. ok is false if anything but plain
// answers came back: such a connection is not used again.
func exchange(ctx context.Context, conn *redis.Conn, batch []*call) (ok bool, elsewhere []*call) {
	ok, unknown, elsewhere := roundTrip(ctx, conn, batch, false)
	if len(unknown) > 0 && ok {
		// The server lost its script cache; EVAL fills it again. Order holds:
		// what these scripts clean up was sent before, in this or an earlier
		// batch.
		var again, more []*call
		ok, again, more = roundTrip(ctx, conn, unknown, true)
		elsewhere = append(elsewhere, more...)
		for _, c := range again {
			c.Unsent(errNoEvidence) // EVAL does not answer NOSCRIPT
		}
		return ok, elsewhere
	}
	for _, c := range unknown {
		c.Unsent(errNoEvidence) // the batch broke after NOSCRIPT
	}
	return ok, elsewhere
}

func roundTrip(ctx context.Context, conn *redis.Conn, batch []*call, whole bool) (ok bool, unknown, elsewhere []*call) {
	cmds := make([]*wireCmd, len(batch))
	var err error
	if len(batch) == 1 {
		cmds[0] = batch[0].Op().encode(ctx, whole)
		err = conn.Process(ctx, cmds[0])
	} else {
		pipe := conn.Pipeline()
		for i, c := range batch {
			cmds[i] = c.Op().encode(ctx, whole)
			_ = pipe.Process(ctx, cmds[i]) // queues it, and cannot fail
		}
		_, err = pipe.Exec(ctx)
	}
	ok = true
	for i, c := range batch {
		switch cmd := cmds[i]; {
		case noScript(cmd.Err()):
			unknown = append(unknown, c)
		case moved(cmd.Err()):
			elsewhere = append(elsewhere, c)
		default:
			ok = c.Op().answer(c, cmd, err) && ok
		}
	}
	return ok, unknown, elsewhere
}
