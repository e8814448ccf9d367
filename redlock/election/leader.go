package election

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// Leader describes a leader as others may see it. It has nothing of the lock's value.
type Leader struct {
	// Owner is the redlock.Config.Owner of the leader's client. It is "" if a client of another
	// library has the lock. It is for people: any client that may write the key can claim any Owner.
	Owner string

	// Since is when the leader asked for the lock of this term, by the clock of its client and in
	// whole seconds. It is zero if a client of another library has the lock.
	Since time.Time

	// Holder stands for the term: it is the redlock.Lock.Holder of the leader's lock, and differs
	// from that of any other term, even of one with the same Owner.
	Holder string
}

// Leader asks the nodes for the leader. It changes nothing, and takes one round trip to the slowest
// node, but never longer than redlock.Config.NodeTimeout. The caller need not be a candidate.
//
// The answer tells of the past: the term may be over when the caller reads it. If the last leader
// ended its term with redlock.Lock.ReleaseAfter, the answer names it for as long as the key stays
// taken, though nobody leads. To know whether it leads itself, a process calls IsLeader.
//
// Errors:
//
//   - ErrNoLeader: the key is free on a majority of the nodes, or no client has a majority, as in the
//     instant in which several candidates try.
//   - redlock.ErrNoQuorum, in a *redlock.QuorumError with the Op "inspect": too few nodes answered to
//     tell. Its Granted is the number of those that did.
//   - redlock.ErrForeign: the key is a hash, a list or the like on so many nodes that no client can
//     lead until somebody deletes it.
//   - redlock.ErrClosed after Close; ctx's cause if ctx ended before the nodes had answered.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	if err := e.check(ctx); err != nil {
		return Leader{}, err
	}
	seen, err := e.locks.Inspect(ctx, e.name)
	if err != nil {
		return Leader{}, err
	}
	switch seen.Verdict() {
	case redlock.VerdictHeld:
		owner, since := seen.Owner()
		holder, _ := seen.Holder()
		return Leader{Owner: owner, Since: since, Holder: holder}, nil
	case redlock.VerdictUnknown:
		return Leader{}, silence(seen)
	case redlock.VerdictForeign:
		return Leader{}, fmt.Errorf("election: leader of %q: %w", e.name, redlock.ErrForeign)
	}
	return Leader{}, fmt.Errorf("%w of %q", ErrNoLeader, e.name)
}

// silence returns an error that names the nodes that could not tell.
func silence(seen *redlock.Inspection) error {
	failed := &redlock.QuorumError{Op: "inspect", Key: seen.Key, Need: seen.Need, Total: len(seen.Nodes), Reason: redlock.ErrNoQuorum}
	for i, n := range seen.Nodes {
		if n.Err == nil {
			failed.Granted++
			continue
		}
		failed.Nodes = append(failed.Nodes, redlock.NodeError{Addr: n.Addr, Index: i, Vote: quorum.Failed, Err: n.Err})
	}
	return failed
}
