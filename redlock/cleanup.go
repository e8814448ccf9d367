package redlock

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// cleanUp deletes what a failed attempt left, on every node that was asked, also
// on those that failed: the SET may have been done all the same. Lanes are in
// order, so a clean-up cannot overtake its SET. It runs whatever becomes of the
// caller's context.
//
// It waits for the nodes that had granted, as the caller is told that nothing
// stays; if patient, also for those that refused, whose reply says how long the
// holder's key lives. The nodes that had not answered at the decision may be a
// moment behind or hung: they get as long again as the others took, twice. So do
// all of them when the caller's context has ended; it is not waited on beyond.
func (r *Redlock) cleanUp(ctx context.Context, b *bid, ttl time.Duration, patient bool) (free time.Duration) {
	b.withdraw()
	took := b.last().Decided().Sub(b.first.Start())
	grace := 2 * max(took, minRoundTrip)
	cmd := *b.first.Op()
	cmd.kind = kindCleanUp
	answered, silent := make([]bool, len(r.nodes)), make([]bool, len(r.nodes))
	var anyAnswered, anySilent, anyGranted bool
	var lefts []time.Duration // of somebody else's key, on each node that may tell
	for _, ballot := range b.ballots() {
		switch n := ballot.Node; {
		case !ballot.Sent:
			lefts = append(lefts, 0) // was not asked: it may be free for all we know
		case ballot.Final == quorum.Granted || ballot.Final == quorum.Refused:
			answered[n], anyAnswered = true, true
			anyGranted = anyGranted || ballot.Final == quorum.Granted || b.grantedBefore(n)
		default:
			silent[n], anySilent = true, true
		}
	}
	spec := quorum.Spec[command]{Op: cmd, All: true, KeepUntil: r.cfg.Clock.Now().Add(ttl)}
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
		case anyGranted || patient:
			cleaned.Wait(ctx)
		}
		lefts = append(lefts, remains(cleaned)...)
	}
	if behind != nil {
		r.waitFor(ctx, behind, min(grace, r.cfg.NodeTimeout-took))
		lefts = append(lefts, remains(behind)...)
	}
	return freeAfter(lefts, quorum.Size(len(r.nodes)))
}

// remains is what the nodes that a clean-up has heard of have of somebody else's key.
func remains(cleanUp *quorum.Round[command]) (lefts []time.Duration) {
	for _, b := range cleanUp.Ballots() {
		if b.Final == quorum.Granted {
			lefts = append(lefts, remaining(b.Reply))
		}
	}
	return lefts
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

// freeAfter is when need nodes may have no holder's key any more, given what remains
// of it on each node that said so: 0 if that cannot be told.
func freeAfter(lefts []time.Duration, need int) time.Duration {
	if len(lefts) < need {
		return 0
	}
	slices.Sort(lefts)
	return lefts[need-1]
}
