package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// giveBack deletes what the failed attempt left, on every node that was asked. It also goes to
// nodes that failed, as they may have executed the SET. Lanes are in order, so it cannot overtake
// its SET. It runs even if the caller's context has ended. The operation of a waiter also asks for
// the queue entry that the wait had before the attempt, or, unless keepEntry, gives that up.
//
// A caller that does not retry is promised that nothing stays on nodes that granted. So giveBack
// waits for these nodes, also beyond the end of the context. A caller that retries waits when it
// gives up. Nodes that had not answered at the decision may be a moment behind, or hung. giveBack
// waits for them twice as long as the others took, and not beyond the end of the context.
//
// The next attempt of a caller that retries first deletes the value of this one. So nodes that
// refused need not be asked now, unless they have a queue entry to remove. If the caller does not
// retry, they are asked, as a hook of the client might have sent a command twice.
func (a *attempt) giveBack(ctx context.Context, keepEntry bool) {
	r := a.r
	a.withdraw()
	took := a.last().Decided().Sub(a.first.Start())
	grace := 2 * max(took, minRoundTrip)
	leaves := a.wait != nil && !keepEntry
	answered, silent := make([]bool, len(r.nodes)), make([]bool, len(r.nodes))
	var anyAnswered, anySilent, anyGranted bool
	for _, ballot := range a.ballots() {
		n := ballot.Node
		granted := ballot.Final == quorum.Granted || a.grantedBefore(n)
		switch {
		case !ballot.Sent && !leaves:
		case granted || ballot.Final == quorum.Refused && !a.retries:
			answered[n], anyAnswered = true, true
			anyGranted = anyGranted || granted
		case ballot.Final != quorum.Refused || leaves:
			silent[n], anySilent = true, true
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
		spec.Done = a.wait.unanswered
		if leaves {
			op.Kind = protocol.Dequeue
			a.wait.GivesBack(spec.KeepUntil)
		} else {
			a.wait.GivesBack(spec.KeepUntil, answered, silent)
		}
	}
	var behind *quorum.Round[protocol.Operation]
	if anySilent {
		spec.Nodes = silent
		behind = r.start(spec)
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
	if behind != nil && (!a.retries || ctx.Err() != nil) {
		r.waitFor(ctx, behind, min(grace, r.cfg.NodeTimeout-took))
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
