package redlock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/label"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Inspection is what the nodes know of a key, each at the moment when it was asked. It contains the
// key's values, which are secrets. Printing it does not show them; only [NodeInspection.Value]
// returns them.
type Inspection struct {
	Key   string           // without Config.KeyPrefix
	Need  int              // the number of nodes in a majority: N/2+1
	Nodes []NodeInspection // in the order of New
}

// NodeInspection is what one node knows of a key.
type NodeInspection struct {
	Addr string // the node's address, as in errors

	// Err is why the node could not report on the key; all fields below are then zero. It matches
	// ErrDuplicateNode if the server has already answered as another node, and ErrForeign if the
	// key has another type than a lock's.
	Err error

	// Holder stands for the value of the key: 8 hex digits of its SHA-256, from which the value
	// cannot be found. It is the same on all nodes that have the same lock; "" if the key is free.
	Holder string

	// Owner is the Config.Owner of the client that has the lock. It is "" if the key is free, and if
	// the value has no such label, as those of other libraries. Anyone with the right to write
	// the key can have written it, but it has nothing that cannot be printed.
	Owner string

	// Since is when the lock was asked for, by the clock of its client, in whole seconds. For a lock
	// that was waited for it is the last attempt, so hardly before the lock was granted. It is zero
	// if the value does not say.
	Since time.Time

	// TTL is how long the key lives on the node. It is 0 if the key is free, and negative if the
	// key does not expire, in which case another program has written it.
	TTL time.Duration

	// Waiting is the number of entries in the node's queue for the key, one for each Redlock that
	// has callers waiting; -1 if the user may not read the queue.
	Waiting int

	// Fence is the highest fencing token that the node has granted for the key; 0 if it knows none,
	// and -1 if the user may not read the fence.
	Fence int64

	value *string // nil if the key is free; a pointer, because printing does not follow it
}

// Value returns the value of the key on the node; "" if the key is free. A client that knows it can
// release the lock: treat it as a secret.
func (n NodeInspection) Value() string {
	if n.value == nil {
		return ""
	}
	return *n.value
}

// Foreign returns why the key on the node does not look like a lock of this library: "it is a
// hash", "its value is no UUID", "it never expires". It returns "" for a key that looks like one,
// for a free key, and if the node could not report on the key.
func (n NodeInspection) Foreign() string {
	var other *protocol.OtherTypeError
	switch {
	case errors.As(n.Err, &other):
		return "it is " + other.Name()
	case n.value == nil:
		return ""
	}
	var why []string
	if _, ok := label.Read(*n.value); !ok {
		why = append(why, "its value is no UUID")
	}
	if n.TTL < 0 {
		why = append(why, "it never expires")
	}
	return strings.Join(why, ", and ")
}

// Inspect asks every node what it knows of key, and changes nothing. The key need not be held.
// Inspect takes one round trip to the slowest node, and never longer than Config.NodeTimeout. If a
// node cannot report on the key, its NodeInspection has the reason, and Inspect returns no error. A
// node in quarantine answers like any other, but may have lost keys.
//
// Errors: ErrClosed after Close; ctx's cause if ctx ends before the nodes have answered. After an
// error that names an argument, no node was asked.
func (r *Redlock) Inspect(ctx context.Context, key string) (*Inspection, error) {
	if err := r.checkInspect(ctx, key); err != nil {
		return nil, err
	}
	if err := r.enter(); err != nil {
		return nil, errs.Op("inspect", key, err)
	}
	defer r.operations.Done()
	if ctx.Err() != nil {
		return nil, errs.Op("inspect", key, context.Cause(ctx))
	}
	nodeKey := r.cfg.KeyPrefix + key
	seen := &survey{nodes: make([]NodeInspection, len(r.nodes))}
	round := r.start(quorum.Spec[protocol.Operation]{
		Op:  protocol.Operation{Kind: protocol.Inspect, Observer: seen, Key: key, NodeKey: nodeKey, Queue: protocol.FlagOf(nodeKey)},
		All: true,
	})
	round.Wait(ctx)
	i := &Inspection{Key: key, Need: quorum.Size(len(r.nodes)), Nodes: seen.end()}
	for _, b := range round.Ballots() {
		n := &i.Nodes[b.Node]
		if errors.Is(b.Err, quorum.ErrAbandoned) {
			return nil, errs.Op("inspect", key, context.Cause(ctx))
		}
		if b.Vote != quorum.Granted {
			*n = NodeInspection{Err: ballotErr(round, b)}
		}
		n.Addr = r.nodes[b.Node].Addr
	}
	return i, nil
}

func (r *Redlock) checkInspect(ctx context.Context, key string) error {
	switch {
	case r == nil || r.closing == nil:
		return errNotMade
	case ctx == nil:
		return errNilContext
	}
	return r.cfg.checkKey(key)
}

// survey collects the nodes' answers to an inspection. It ignores answers that lanes bring after
// end.
type survey struct {
	mu    sync.Mutex
	nodes []NodeInspection // nil after end
}

func (s *survey) Replied(node int, _ *protocol.Operation, r protocol.Reply) {
	if r.Seen == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil {
		return
	}
	n := NodeInspection{TTL: r.Seen.TTL, Waiting: r.Seen.Waiting, Fence: r.Seen.Fence, value: r.Seen.Value}
	if n.value != nil {
		n.Holder = holderName(*n.value)
		shown, _ := label.Read(*n.value)
		n.Owner, n.Since = shown.Owner, shown.Since
	}
	s.nodes[node] = n
}

func (*survey) QueueDenied(int, error) {}

func (s *survey) end() []NodeInspection {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := s.nodes
	s.nodes = nil
	return nodes
}

// holderName returns a name for the holder with this value. It does not reveal the value.
func holderName(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:4])
}

// values returns the values that the nodes have, each once. If foreign is false, it leaves out
// values of keys that do not look like locks.
func (i *Inspection) values(foreign bool) (all []string) {
	for _, n := range i.Nodes {
		if n.value != nil && (foreign || n.Foreign() == "") && !slices.Contains(all, *n.value) {
			all = append(all, *n.value)
		}
	}
	return all
}

// noLock returns an error that names a node whose key does not look like a lock; nil if there is
// none.
func (i *Inspection) noLock() error {
	for _, n := range i.Nodes {
		if why := n.Foreign(); why != "" {
			return fmt.Errorf("%w: on %s %s", errs.Inline(ErrForeign), n.Addr, why)
		}
	}
	return nil
}

// Holder returns the Holder of the nodes in an inspection that have this lock. Unlike Value it may
// be shown. If holders log it, the log shows which of them an inspection has found.
func (l *Lock) Holder() string { return holderName(l.value) }
