package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// giveBack deletes what a failed attempt left, on every node where that can be, also
// on those that failed: the SET may have been done all the same. Lanes are in order, so
// it cannot overtake its SET. It runs whatever becomes of the caller's context. Whoever
// waits asks with the same command for the place that it had before the attempt.
//
// The caller is told that nothing stays, so it waits for the nodes that had granted;
// who waits on does not. The nodes that had not answered at the decision may be a moment
// behind or hung: they get as long again as the others took, twice. So do all of them
// when the caller's context has ended; it is not waited on beyond.
//
// A patient caller tries again, and then gives back first what it tried with: nodes that
// refused need not be asked before. Others are, as a hook of the client's might have sent
// a command twice.
func (r *Redlock) giveBack(ctx context.Context, b *bid, ttl time.Duration, w *wait, patient bool) {
	b.withdraw()
	took := b.last().Decided().Sub(b.first.Start())
	grace := 2 * max(took, minRoundTrip)
	answered, silent := make([]bool, len(r.nodes)), make([]bool, len(r.nodes))
	var anyAnswered, anySilent, anyGranted bool
	for _, ballot := range b.ballots() {
		n := ballot.Node
		granted := ballot.Final == quorum.Granted || b.grantedBefore(n)
		switch {
		case !ballot.Sent:
		case granted || ballot.Final == quorum.Refused && !patient:
			answered[n], anyAnswered = true, true
			anyGranted = anyGranted || granted
		case ballot.Final != quorum.Refused:
			silent[n], anySilent = true, true
		}
	}
	cmd := *b.first.Op()
	cmd.kind, cmd.stance = kindCleanUp, nil
	if cmd.queue == nil {
		cmd.queue = flagOf(cmd.key.(string))
	}
	spec := quorum.Spec[command]{All: true, KeepUntil: r.cfg.Clock.Now().Add(ttl)}
	if w != nil {
		cmd.kind, cmd.stance = kindStand, w.stance(cmd.value)
		spec.Done = w.failed
		w.owes(answered, silent, spec.KeepUntil)
	}
	spec.Op = cmd
	var behind *quorum.Round[command]
	if anySilent {
		spec.Nodes = silent
		behind = r.start(spec)
	}
	if anyAnswered {
		spec.Nodes = answered
		cleaned := r.start(spec)
		switch {
		case anyGranted && ctx.Err() != nil:
			r.waitFor(context.Background(), cleaned, min(grace, r.cfg.NodeTimeout))
		case anyGranted && !patient:
			cleaned.Wait(ctx)
		}
	}
	if behind != nil && (!patient || ctx.Err() != nil) {
		r.waitFor(ctx, behind, min(grace, r.cfg.NodeTimeout-took))
	}
}

// waitFor waits for a round for d at the most.
func (r *Redlock) waitFor(ctx context.Context, round *quorum.Round[command], d time.Duration) {
	if d <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer r.cfg.Clock.AfterFunc(d, cancel).Stop()
	round.Wait(ctx)
}
