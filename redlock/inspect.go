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

	"github.com/google/uuid"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Inspection is what the nodes know of a key, each at the moment when it was asked. It
// holds the values, as secrets: nothing prints them but [NodeInspection.Value].
type Inspection struct {
	Key   string           // the resource, without Config.KeyPrefix
	Need  int              // how many nodes are a majority: N/2+1
	Nodes []NodeInspection // in the order of New
}

// NodeInspection is what one node knows of a key.
type NodeInspection struct {
	Addr string // as in errors

	// Err is why the node could not tell; everything below is then zero. It matches
	// ErrDuplicateNode for a server that has told as another node already, and ErrForeign
	// for a key of another type.
	Err error

	// Holder stands for the value of the key: 8 hex digits of its SHA-256. It is the same
	// on all nodes that one lock is on, and there is no way back from it to the value;
	// "" if the key is free.
	Holder string

	// TTL is how long the key lives on the node; 0 if it is free, and negative if it does
	// not expire, which is a key of some other program's.
	TTL time.Duration

	// Waiting is how many stand in the node's queue for the key; one for each Redlock
	// that has callers waiting. -1 if the user may not look.
	Waiting int

	// Fence is the highest fencing token that the node has granted for the key; 0 if it
	// knows none, and -1 if the user may not look.
	Fence int64

	value *string // nil: free; by pointer, as nothing that prints follows one
}

// Value is the value of the key on the node, "" if it is free. Whoever knows it can
// release the lock: treat it as a secret.
func (n NodeInspection) Value() string {
	if n.value == nil {
		return ""
	}
	return *n.value
}

// Foreign says why the key on the node does not look like a lock of this library: "it is a
// hash", "its value is no UUID", "it never expires". It is "" for a key that does, for a
// free key, and if the node could not tell.
func (n NodeInspection) Foreign() string {
	var other *protocol.OtherTypeError
	switch {
	case errors.As(n.Err, &other):
		return "it is " + other.Name()
	case n.value == nil:
		return ""
	}
	var why []string
	if !lockValue(*n.value) {
		why = append(why, "its value is no UUID")
	}
	if n.TTL < 0 {
		why = append(why, "it never expires")
	}
	return strings.Join(why, ", and ")
}

// lockValue reports whether the value is of a lock's form; see random.value.
func lockValue(value string) bool { return len(value) == 36 && uuid.Validate(value) == nil }

// Inspect asks every node what it knows of key. It changes nothing, and the key need not
// be held by anybody. It takes one round trip to the slowest node, and never longer than
// Config.NodeTimeout; what a node could not tell is in its NodeInspection, and no error of
// Inspect's. A node in quarantine answers as any other: what it has may be less than it
// had.
//
// Errors: ErrClosed after Close; ctx's cause if ctx ends before the nodes have answered.
// An error that names an argument means that nobody was asked.
func (r *Redlock) Inspect(ctx context.Context, key string) (*Inspection, error) {
	if err := r.checkInspect(ctx, key); err != nil {
		return nil, err
	}
	if err := r.enter(); err != nil {
		return nil, errs.Op("inspect", key, err)
	}
	defer r.attempts.Done()
	if ctx.Err() != nil {
		return nil, errs.Op("inspect", key, context.Cause(ctx))
	}
	name := r.cfg.KeyPrefix + key
	seen := &survey{nodes: make([]NodeInspection, len(r.nodes))}
	round := r.start(quorum.Spec[protocol.Operation]{
		Op:  protocol.Operation{Kind: protocol.Inspect, Observer: seen, Key: key, NodeKey: name, Queue: protocol.FlagOf(name)},
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
			*n = NodeInspection{Err: nodeErr(round, b)}
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

// survey is where the nodes' answers to an inspection meet. Lanes bring them, also when
// nobody waits for them any more.
type survey struct {
	mu    sync.Mutex
	nodes []NodeInspection // nil: nobody does
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
		n.Holder = holder(*n.value)
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

// holder names a value without telling it.
func holder(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:4])
}

// values are those that the nodes have, each once; those of locks alone unless foreign.
func (i *Inspection) values(foreign bool) (all []string) {
	for _, n := range i.Nodes {
		if n.value != nil && (foreign || n.Foreign() == "") && !slices.Contains(all, *n.value) {
			all = append(all, *n.value)
		}
	}
	return all
}

// noLock is an error if some node has the key and none has a lock.
func (i *Inspection) noLock() error {
	for _, n := range i.Nodes {
		if why := n.Foreign(); why != "" {
			return fmt.Errorf("%w: on %s %s", errs.Inline(ErrForeign), n.Addr, why)
		}
	}
	return nil
}

// Holder is what inspections call this lock: the Holder of the nodes that have it. Unlike
// Value it may be shown, and finds a lock's holder by its log.
func (l *Lock) Holder() string { return holder(l.value) }
