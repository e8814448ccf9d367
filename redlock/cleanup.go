package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// giveBack has the nodes that were sent a failed attempt delete its key, also if they failed: they
// may have executed the SET. A lane keeps the order of its operations, so the deletion cannot
// overtake the SET. A node that does not answer is asked again until the ttl is over, whether or not
// giveBack waits for it. For a waiter, the same operation asks for the queue entry that the wait had
// before the attempt or, unless keepEntry, gives it up, also on nodes that were not sent the attempt.
//
// A node that refused has nothing to delete, unless a hook of the client has sent the SET twice. If
// the caller does not retry, such nodes are asked too. If it retries, its next try deletes this
// value first, so they are asked only if they have a queue entry to remove.
//
// Which nodes giveBack waits for:
//
//   - For those that answered, if one of them granted: the key is to be gone from there when the
//     caller returns. It waits for at most a NodeTimeout. If ctx has ended, it waits for the grace
//     only: that is enough for a node that has just answered, unless it hangs, and the caller wants
//     to leave. If the caller retries and ctx has not ended, giveBack sets cleanUp instead, and the
//     caller waits for that when it gives up.
//   - For the others, which may be a moment behind or hung: for the grace, or for what the attempt
//     has left of NodeTimeout if that is shorter. If the caller retries, or ctx has ended, it does
//     not wait for them.
//
// The grace is twice as long as the attempt took: at least 2 ms, and at most a NodeTimeout.
func (a *attempt) giveBack(ctx context.Context, keepEntry bool) {
	r := a.r
	a.withdraw()
	took := a.last().Decided().Sub(a.first.Start())
	grace := 2 * max(took, minRoundTrip)
	leaves := a.wait != nil && !keepEntry
	answered, others := make([]bool, len(r.nodes)), make([]bool, len(r.nodes))
	var anyAnswered, anyOthers, anyGranted bool
	for _, ballot := range a.ballots() {
		n := ballot.Node
		granted := ballot.Final == quorum.Granted || a.grantedBefore(n)
		switch {
		case !ballot.Sent && !leaves:
		case granted || ballot.Final == quorum.Refused && !a.retries:
			answered[n], anyAnswered = true, true
			anyGranted = anyGranted || granted
		case ballot.Final != quorum.Refused || leaves:
			others[n], anyOthers = true, true
		}
	}
	spec := quorum.Spec[protocol.Operation]{Op: *a.first.Op(), All: true, KeepUntil: r.cfg.Clock.Now().Add(a.ttl)}
	op := &spec.Op
	op.Kind, op.Sender, op.Observer = protocol.CleanUp, nil, observer{r}
	if op.Queue == nil {
		op.Queue = protocol.FlagOf(op.NodeKey.(string))
	}
	if a.wait != nil {
		op.Kind, op.Sender, op.Observer = protocol.Enqueue, a.wait.sender(op.Value), a.wait
		spec.Done = a.wait.roundDone
		if leaves {
			op.Kind = protocol.Dequeue
			a.wait.GivesBack(spec.KeepUntil)
		} else {
			a.wait.GivesBack(spec.KeepUntil, answered, others)
		}
	}
	var cleanedLater *quorum.Round[protocol.Operation]
	if anyOthers {
		spec.Nodes = others
		cleanedLater = r.start(spec)
	}
	if anyAnswered {
		spec.Nodes = answered
		cleaned := r.start(spec)
		switch {
		case !anyGranted:
		case ctx.Err() != nil:
			r.waitFor(context.Background(), cleaned, min(grace, r.cfg.NodeTimeout))
		case a.retries:
			a.cleanUp = cleaned
		default:
			cleaned.Wait(context.Background())
		}
	}
	if cleanedLater != nil && !a.retries {
		r.waitFor(ctx, cleanedLater, min(grace, r.cfg.NodeTimeout-took))
	}
}

// waitFor waits for a round for d at the most.
func (r *Redlock) waitFor(ctx context.Context, round *quorum.Round[protocol.Operation], d time.Duration) {
	if d <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer r.cfg.Clock.AfterFunc(d, cancel).Stop()
	round.Wait(ctx)
}
