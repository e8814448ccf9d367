package redlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// reproposals is how many more tokens an attempt proposes: one for the fence that it did not
// know, and two for other clients that propose at the same time.
const reproposals = 3

// newFence is for the first proposal on a key. The clock only makes it likely that
// nobody has granted as much: that tokens grow does not depend on it.
func (r *Redlock) newFence(key, name string) (*protocol.Fence, error) {
	now := r.cfg.Clock.Now()
	token := r.tokens.next(key, now.UnixMicro())
	if token > protocol.MaxToken {
		return nil, fmt.Errorf("redlock: acquire %q: Config.Clock is beyond the year 2255, where fencing tokens end", errs.Short(key))
	}
	return &protocol.Fence{
		Key: protocol.FenceKey(name), Token: token, Retention: r.retention, Read: now,
	}, nil
}

// propose goes on with an attempt whose first proposal has been decided. A node that
// reports a fence as high as what was proposed has granted that to somebody: the next
// proposal is above it, with the same value, so that nodes which granted the last one
// grant this one too. The grants of each count for themselves. A majority for an
// earlier proposal stands if a later one finds none, since that can only have made
// its keys live longer. All of it takes no longer than NodeTimeout.
func (a *attempt) propose(ctx context.Context, op protocol.Operation) {
	r := a.r
	for n := 0; ; n++ {
		last, token := a.last(), op.Fence.Token.(int64)
		if last.Tally().Outcome() == quorum.Won && r.fresh(last) {
			a.won = last
		}
		top := int64(0)
		if last.Refused() {
			top = highest(last)
		}
		now := r.cfg.Clock.Now()
		if top > 0 || n > 0 {
			r.tokens.note(op.Key, max(top, token), now.UnixMicro())
		}
		elapsed := now.Sub(a.first.Start())
		if top < token || n == reproposals || r.hopeless(last) || ctx.Err() != nil ||
			elapsed >= r.cfg.NodeTimeout || clock.Validity(a.ttl, elapsed, r.cfg.Drift) <= 0 {
			return
		}
		// Never below the clock, however old the attempt: with a master that forgot
		// its fence, the clock is what the order rests on.
		next := *op.Fence
		token = max(top+1, now.UnixMicro())
		if token > protocol.MaxToken {
			return
		}
		next.Token, next.Read = token, now
		op.Fence = &next
		round := r.start(a.spec(op))
		a.more = append(a.more, round)
		timer := r.cfg.Clock.AfterFunc(r.cfg.NodeTimeout-elapsed, round.Expire)
		round.Wait(ctx)
		timer.Stop()
	}
}

// fresh reports whether a proposal was decided within NodeTimeout of the clock's reading
// that it rests on; this goroutine may have been asleep in between. Where a node has
// forgotten its fence, tokens grow as far as proposals are that young.
func (r *Redlock) fresh(round *quorum.Round[protocol.Operation]) bool {
	return round.Decided().Sub(round.Op().Fence.Read) <= r.cfg.NodeTimeout
}

// highest is the highest fence that a node has reported instead of granting.
func highest(round *quorum.Round[protocol.Operation]) (top int64) {
	for _, b := range round.Ballots() {
		if b.Final == quorum.Refused {
			top = max(top, b.Reply)
		}
	}
	return top
}

// hopeless tells that no token would have got a majority: too many nodes have
// somebody else's key, or failed.
func (r *Redlock) hopeless(round *quorum.Round[protocol.Operation]) bool {
	against := 0
	for _, b := range round.Ballots() {
		if b.Vote == quorum.Failed || b.Vote == quorum.Refused && !errors.Is(b.Err, protocol.ErrFenced) {
			against++
		}
	}
	return against > len(r.nodes)-quorum.Size(len(r.nodes))
}

// tokens remembers the highest token seen of a key while that is ahead of this
// client's clock: afterwards the clock is higher by itself. It saves the proposals
// that would be in vain; nothing depends on it.
type tokens struct {
	mu    sync.Mutex
	seen  map[string]int64
	swept int64 // when it was last looked through for old ones
}

// maxSeen bounds what clocks that are far ahead make us remember. It is some
// megabytes, and beyond it a proposal more is needed now and then.
const maxSeen = 1 << 15

// next is the first token to propose, by a clock of microseconds.
func (t *tokens) next(key string, now int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen, any := t.seen[key]
	if any && seen < now {
		delete(t.seen, key)
	}
	return max(now, seen+1, protocol.MinToken)
}

// note remembers that a token of the key was seen.
func (t *tokens) note(key string, token, now int64) {
	if token < now {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[string]int64{}
	}
	if _, known := t.seen[key]; !known && len(t.seen) >= maxSeen {
		if now-t.swept >= time.Second.Microseconds() {
			t.swept = now
			maps.DeleteFunc(t.seen, func(_ string, token int64) bool { return token < now })
		}
		if len(t.seen) >= maxSeen {
			return
		}
	}
	t.seen[key] = max(t.seen[key], token)
}
