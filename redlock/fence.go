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

// reproposals is how many more tokens an attempt may propose: one because it did not know the
// fence, and two because other clients propose at the same time.
const reproposals = 3

// newFence returns the fence for the first proposal on a key. Thanks to the clock it is likely that
// no node has granted a token as high. That tokens grow does not depend on the clock.
func (r *Redlock) newFence(key, nodeKey string) (*protocol.Fence, error) {
	now := r.cfg.Clock.Now()
	token := r.tokens.next(key, now.UnixMicro())
	if token > protocol.MaxToken {
		return nil, fmt.Errorf("redlock: acquire %q: Config.Clock is beyond the year 2255, where fencing tokens end", errs.Short(key))
	}
	return &protocol.Fence{
		Key: protocol.FenceKey(nodeKey), Token: token, Retention: r.retention, Read: now,
	}, nil
}

// propose continues an attempt whose first proposal has been decided. A node that reports a fence
// as high as the proposed token has granted that fence to another client. The next proposal is
// above it, with the same value, so that nodes which granted the last one grant this one too. Each
// proposal needs a majority of its own. A majority for an earlier proposal stands if a later one
// finds none, because the later one can only have made its keys live longer. All of it takes no
// longer than NodeTimeout.
func (a *attempt) propose(ctx context.Context, op protocol.Operation) {
	r := a.r
	for n := 0; ; n++ {
		last, token := a.last(), op.Fence.Token.(int64)
		if last.Tally().Outcome() == quorum.Won && r.fresh(last) {
			a.winner = last
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
		// Never below the clock, however old the attempt: if a master has forgotten its
		// fence, only the clock keeps the tokens in order.
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
		a.observed.decided(round)
	}
}

// fresh reports whether a proposal was decided within NodeTimeout of the clock's reading from which
// its token was made; this goroutine may have been asleep in between. If a node has forgotten its
// fence, tokens grow only as long as proposals are that young.
func (r *Redlock) fresh(round *quorum.Round[protocol.Operation]) bool {
	return round.Decided().Sub(round.Op().Fence.Read) <= r.cfg.NodeTimeout
}

// highest returns the highest fence that a node has reported instead of granting; 0 if none has.
func highest(round *quorum.Round[protocol.Operation]) (top int64) {
	for _, b := range round.Ballots() {
		if b.Final == quorum.Refused {
			top = max(top, b.Reply)
		}
	}
	return top
}

// hopeless reports whether no token would have got a majority: too many nodes have another client's
// key, or failed.
func (r *Redlock) hopeless(round *quorum.Round[protocol.Operation]) bool {
	against := 0
	for _, b := range round.Ballots() {
		if b.Vote == quorum.Failed || b.Vote == quorum.Refused && !errors.Is(b.Err, protocol.ErrFenced) {
			against++
		}
	}
	return against > len(r.nodes)-quorum.Size(len(r.nodes))
}

// tokens remembers the highest token seen of a key while that is ahead of this client's clock.
// Afterwards the clock itself is higher. It saves proposals that would be in vain; nothing depends
// on it.
type tokens struct {
	mu    sync.Mutex
	seen  map[string]int64
	swept int64 // when old ones were last removed, in microseconds
}

// maxSeen bounds how many tokens are remembered because of clocks that are far ahead. It allows
// some megabytes; beyond it an attempt needs one more proposal now and then.
const maxSeen = 1 << 15

// next returns the first token to propose. now is the clock in microseconds.
func (t *tokens) next(key string, now int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen, any := t.seen[key]
	if any && seen < now {
		delete(t.seen, key)
	}
	return max(now, seen+1, protocol.MinToken)
}

// note remembers a token of the key that was seen, if it is ahead of the clock.
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
