package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// giveBack deletes what a failed attempt left, on every node where that can be, also
// on those that failed: the SET may have been done all the same. Lanes are in order, so
// it cannot overtake its SET. It runs whatever becomes of the caller's context. A waiter's
// command is back: it asks for the queue entry that the wait had before the attempt
// (protocol.Enqueue), or gives that up (protocol.Dequeue).
//
// The caller is told that nothing stays where it was granted, so it waits for the nodes
// that had granted, also beyond the end of its context; a caller that tries again does so
// when it gives up. The nodes that had not answered at the decision may be a moment behind
// or hung: they get as long again as the others took, twice, and nothing beyond the end of
// the context. A node that granted before the context ended gets as long as that.
//
// A patient caller tries again, and then gives back first what it tried with: nodes that
// refused need not be asked before, unless they have a queue entry to remove. Others are, as a hook of the client's might have sent
// a command twice.
func (r *Redlock) giveBack(ctx context.Context, b *bid, ttl time.Duration, w *wait, back protocol.Kind, patient bool) remains {
	b.withdraw()
	took := b.last().Decided().Sub(b.first.Start())
	grace := 2 * max(took, minRoundTrip)
	answered, silent := make([]bool, len(r.nodes)), make([]bool, len(r.nodes))
	var anyAnswered, anySilent, anyGranted bool
	for _, ballot := range b.ballots() {
		n := ballot.Node
		granted := ballot.Final == quorum.Granted || b.grantedBefore(n)
		switch {
		case !ballot.Sent && back == protocol.Enqueue:
		case granted || ballot.Final == quorum.Refused && !patient:
			answered[n], anyAnswered = true, true
			anyGranted = anyGranted || granted
		case ballot.Final != quorum.Refused || back == protocol.Dequeue:
			silent[n], anySilent = true, true
		}
	}
	cmd := *b.first.Op()
	cmd.Kind, cmd.Entry, cmd.Observer = protocol.CleanUp, nil, observer{r}
	if cmd.Queue == nil {
		cmd.Queue = protocol.FlagOf(cmd.NodeKey.(string))
	}
	spec := quorum.Spec[protocol.Operation]{All: true, KeepUntil: r.cfg.Clock.Now().Add(ttl)}
	if w != nil {
		cmd.Kind, cmd.Entry, cmd.Observer = back, w.entry(cmd.Value), w
		spec.Done = w.failed
		if back == protocol.Enqueue {
			w.owes(spec.KeepUntil, answered, silent)
		} else {
			w.owes(spec.KeepUntil)
		}
	}
	spec.Op = cmd
	var behind *quorum.Round[protocol.Operation]
	if anySilent {
		spec.Nodes = silent
		behind = r.start(spec)
	}
	left := remains{value: cmd.Value}
	if anyAnswered {
		spec.Nodes = answered
		cleaned := r.start(spec)
		switch {
		case !anyGranted:
		case ctx.Err() != nil:
			r.waitFor(context.Background(), cleaned, min(grace, r.cfg.NodeTimeout))
		case patient:
			left.cleaned = cleaned
		default:
			cleaned.Wait(context.Background())
		}
	}
	if behind != nil && (!patient || ctx.Err() != nil) {
		r.waitFor(ctx, behind, min(grace, r.cfg.NodeTimeout-took))
	}
	return left
}

// remains is what a failed attempt leaves behind for a caller that tries again.
type remains struct {
	value   string                            // that it tried with, for the next to make sure that it is gone
	cleaned *quorum.Round[protocol.Operation] // deletes it where it was granted; nil: nowhere
}

// gone waits until the nodes that had granted the attempt have deleted its key, no longer
// than NodeTimeout from when they were told to.
func (l remains) gone() {
	if l.cleaned != nil {
		l.cleaned.Wait(context.Background())
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
