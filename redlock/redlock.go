package redlock

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/asynclog"
	"github.com/quorumlock/redlock/redlock/internal/conn"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
	"github.com/quorumlock/redlock/redlock/internal/schedule"
	"github.com/quorumlock/redlock/redlock/internal/voter"
	"github.com/quorumlock/redlock/redlock/internal/waitqueue"
	"github.com/quorumlock/redlock/redlock/internal/wakeup"
)

// Redlock acquires locks that a majority of independent Redis masters grants. It is safe for
// concurrent use, and does not change after New or Open. Make one for a set of masters and share
// it: it holds one connection to each.
type Redlock struct {
	cfg       Config
	nodes     []*conn.Node
	group     *quorum.Group[protocol.Operation]
	scheduler *schedule.Scheduler[*Lock]
	random    *random
	local     *waitqueue.Local[wait]
	guard     *voter.Guard

	identified atomic.Bool // the very first round has waited for all nodes; see ask

	tokens    tokens
	retention any // int64: milliseconds for which fences are kept

	subscriber *wakeup.Subscriber
	waits      *waitqueue.Waits
	handoffs   waitqueue.RecentKeys // keys whose last release by this client woke a waiter of another one
	unprompted chan struct{}        // a permit for each try or probe that may be made without a wake-up

	log      *asynclog.Log
	reporter *reporter // nil without Config.Observer
	counters counters
	made     time.Time // by Config.Clock

	closers []func() error // called at the end of Close, in this order

	mu         sync.RWMutex
	closed     bool
	closing    chan struct{}
	operations sync.WaitGroup // calls of the API that are under way
	ended      chan struct{}  // closed when Close is done
}

// New makes a Redlock from clients, one for each master. Each is a *redis.Client (a server, or a
// Sentinel-managed master) or a *redis.ClusterClient (a Cluster that acts as one node). A client
// with go-redis' default options does not slow a round down.
//
// The caller keeps the clients, and closes them after the Redlock. A *redis.Client gets one hook,
// which watches dials and stays. The client's other hooks see every command, and may change its
// key. They must not keep a command after they have returned, because it is used again.
//
// With a *redis.ClusterClient, hooks that were added to its shards' clients in OnNewNode see every
// command. Hooks that were added to the ClusterClient itself see none. New refuses a ClusterClient
// if such a hook changes keys, because locks would then not have the keys that the rest of the
// application uses. To find out, New sends a SET through these hooks, and stops it before it
// leaves. It cannot notice a hook that is added later, or one that changes only some keys.
//
// New refuses a client that would wait for a silent node for ever (a ReadTimeout of -1 or -2). It
// also refuses a client with a StreamingCredentialsProvider, because go-redis panics when a Conn of
// that client connects. A CredentialsProviderContext is called for each new connection. With
// ConnMaxLifetime, connections are replaced also while they are in use. A client with
// ContextTimeoutEnabled, as those of Open, notices within NodeTimeout that a connection was dropped
// in silence while it was idle.
//
// New contacts no node. Its errors name the argument: no node, a nil node, a client of an
// unsuitable type (for example a Ring), the same client twice (ErrDuplicateNode), or a Config field
// out of its range.
func New(nodes []redis.UniversalClient, cfg Config) (*Redlock, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if len(nodes) == 0 {
		return nil, errors.New("redlock: nodes is empty")
	}
	r := &Redlock{
		cfg:        cfg,
		random:     newRandom(cfg.Rand),
		local:      waitqueue.NewLocal[wait](),
		log:        asynclog.New(cfg.Logger),
		closing:    make(chan struct{}),
		unprompted: permits(),
		ended:      make(chan struct{}),
		made:       cfg.Clock.Now(),

		retention: protocol.Millis(cfg.FenceRetention),
	}
	addrs := map[string]int{}
	seen := map[redis.UniversalClient]int{}
	for i, client := range nodes {
		n, err := conn.NewNode(client, conn.Config{NodeTimeout: cfg.NodeTimeout, Clock: cfg.Clock, KeyPrefix: cfg.KeyPrefix})
		if err != nil {
			return nil, fmt.Errorf("redlock: nodes[%d] %w", i, err)
		}
		if first, twice := seen[client]; twice {
			return nil, fmt.Errorf("%w: nodes[%d] and nodes[%d] are the same client", ErrDuplicateNode, first, i)
		}
		seen[client] = i
		// Clients with dialers of their own may have the same address.
		addrs[n.Addr]++
		if times := addrs[n.Addr]; times > 1 {
			n.Addr = fmt.Sprintf("%s (%d)", n.Addr, times)
		}
		r.nodes = append(r.nodes, n)
	}
	id, err := r.random.uuid()
	if err != nil {
		return nil, fmt.Errorf("redlock: Config.Rand: %w", err)
	}
	r.subscriber = wakeup.New(wakeup.Config{
		ID: hex.EncodeToString(id[:])[:idLength], Nodes: r.nodes,
		NodeTimeout: cfg.NodeTimeout, Clock: cfg.Clock, Log: r.log, Leave: r.dequeueStray,
	})

	r.waits = waitqueue.New(waitqueue.Config{Nodes: len(r.nodes), NodeTimeout: cfg.NodeTimeout, Random: r.random.below})
	transports := make([]quorum.Transport[protocol.Operation], len(r.nodes))
	r.guard = voter.NewGuard(cfg.Clock, cfg.RestartGuard, cfg.Drift, len(r.nodes), r.log, r.subscriber.Renew)
	for i, n := range r.nodes {
		n.Identify(func(addr string) *voter.Server { return r.guard.Server(i, n.Addr, addr) })
		transports[i] = n
	}
	r.group = quorum.NewGroup(transports, cfg.Clock, cfg.NodeTimeout)
	if r.reporter = newReporter(cfg, r.nodes, r.log); r.reporter != nil {
		r.group.OnVotes(r.reporter.voted)
		r.guard.OnQuarantine(r.reporter.quarantine)
	}
	for i, n := range r.nodes {
		stop := n.WatchDials(
			func(err error) { r.group.Unreachable(i, err) },
			func() { r.group.Reachable(i) })
		r.closers = append(r.closers, func() error { stop(); return nil })
	}
	r.scheduler = schedule.New(cfg.Clock, func(l *Lock) *schedule.Entry { return &l.scheduled }, (*Lock).expire, (*Lock).renew)
	return r, nil
}

// Close releases all held locks, and ends their contexts with the cause ErrClosed. It stops
// renewals. Operations that are waiting, and later ones, fail with ErrClosed. On nodes that do not
// answer, keys live until their ttl is over.
//
// Close returns when all goroutines of the Redlock have ended. With answering nodes that takes a
// round trip. With silent nodes it takes at most a few NodeTimeouts, plus the time until their
// clients give up: the ReadTimeout, plus the time that the client's own callbacks take. The
// ReadTimeout is five seconds by go-redis' default. With Open it is a second, unless NodeTimeout is
// above half a second or the URL says otherwise. Close waits for a Trace or a Logger that blocks
// for a second at the most, for an Observer that blocks for another second, and leaves them behind.
//
// With Open, Close also closes the clients and returns their errors. Otherwise its error is nil. A
// second Close waits for the first.
func (r *Redlock) Close() error {
	if r == nil || r.closing == nil {
		return errNotMade
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		<-r.ended
		return nil
	}
	r.closed = true
	close(r.closing)
	r.mu.Unlock()
	defer close(r.ended)

	r.operations.Wait() // bounded by NodeTimeout for the round and for its clean-up
	r.subscriber.Close()
	var releases []*quorum.Round[protocol.Operation]
	for _, l := range r.scheduler.Stop() {
		if round := l.startRelease(ErrClosed); round != nil {
			releases = append(releases, round)
		}
	}
	for _, round := range releases {
		round.Wait(context.Background())
	}
	r.group.Close(r.cfg.NodeTimeout)
	r.subscriber.Wait()
	r.guard.Close()
	r.reporter.close()
	r.log.Close(r.cfg.Clock)

	var errs []error
	for _, f := range r.closers {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// idLength is how many digits of a UUID distinguish the Redlocks that wait for one key: 60 random
// bits.
const idLength = 16

var errNotMade = errors.New("redlock: not made by New or Open")

// enter registers an operation, until operations.Done, so that Close waits for it. It fails if the
// Redlock is closed.
func (r *Redlock) enter() error {
	if r == nil || r.closing == nil {
		return errNotMade
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return ErrClosed
	}
	r.operations.Add(1)
	return nil
}

// start begins a round, and traces it if Config.Trace is set.
func (r *Redlock) start(spec quorum.Spec[protocol.Operation]) *quorum.Round[protocol.Operation] {
	round := r.submit(spec)
	round.Arm()
	return round
}

// submit is start for a caller that holds mutexes of a Lock: the round makes no callback before
// Arm.
func (r *Redlock) submit(spec quorum.Spec[protocol.Operation]) *quorum.Round[protocol.Operation] {
	if r.reporter == nil {
		spec.Op.Context = nil // a pending delivery would keep it alive for nothing
	}
	if r.cfg.Trace != nil {
		spec.Timed = true
		done := spec.Done
		spec.Done = func(round *quorum.Round[protocol.Operation]) {
			if done != nil {
				done(round)
			}
			r.trace(round)
		}
	}
	return r.group.Submit(spec)
}

// trace passes a finished round to Config.Trace, on the log's goroutine.
func (r *Redlock) trace(round *quorum.Round[protocol.Operation]) {
	t := traceOf(r.nodes, round)
	r.log.Call(func() { r.cfg.Trace(t) })
}

// quorumError returns the error of a round that failed.
func (r *Redlock) quorumError(round *quorum.Round[protocol.Operation], reason, cause error) *QuorumError {
	tally, op := round.Tally(), round.Op()
	e := &QuorumError{
		Op: op.Kind.String(), Key: op.Key,
		Need: tally.Need(), Granted: tally.Granted, Total: tally.N,
		Reason: reason, Cause: cause,
	}
	for _, b := range round.Ballots() {
		if b.Vote == quorum.Granted {
			continue
		}
		n := NodeError{Addr: r.nodes[b.Node].Addr, Index: b.Node, Vote: b.Vote, Err: ballotErr(round, b)}
		if late := b.Final == quorum.Refused; late && n.Vote == quorum.Pending {
			n.Err = errUndecided
		}
		e.Nodes = append(e.Nodes, n)
	}
	return e
}

// unasked returns an error of an operation on key without any node's answer.
func (r *Redlock) unasked(op, key string) *QuorumError {
	nodes := len(r.nodes)
	return &QuorumError{Op: op, Key: key, Need: quorum.Size(nodes), Total: nodes}
}

// noQuorum returns the error of a failed round whose operation no node refuses.
func (r *Redlock) noQuorum(ctx context.Context, round *quorum.Round[protocol.Operation]) *QuorumError {
	reason := ErrNoQuorum
	if round.Tally().Outcome() == quorum.Open {
		reason = nil // the caller left, and nodes that have not answered have not failed
	}
	return r.quorumError(round, reason, context.Cause(ctx))
}
