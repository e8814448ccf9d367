package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/quorum"
)

// fence is what a command of a lock with a fencing token has beside those of others,
// boxed once for all nodes.
type fence struct {
	key       any // string: the fence's own key, in the slot of the lock's
	token     any // int64: the one proposed, or, for a held lock, its own
	retention any // int64: milliseconds
}

const (
	// maxToken is the highest that Lua, whose numbers are doubles, still tells from
	// the next. As microseconds it is the year 2255.
	maxToken = 1<<53 - 1
	// minToken is such that no refusal, which is a fence not below it, reads as the 1
	// of a grant.
	minToken = 2
	// reproposals is how many more tokens an attempt proposes: one for the fence that
	// it did not know, and two for others who are at it at the same time.
	reproposals = 3
)

var (
	errFenced   = errors.New("has seen a token as high as the one proposed")
	errTokenEnd = errors.New("has a fence that no token is above")
)

// newFence is for the first proposal on a key. The clock only makes it likely that
// nobody has granted as much: that tokens grow does not depend on it.
func (r *Redlock) newFence(key, name string) (*fence, error) {
	token := r.tokens.next(key, r.micros())
	if token > maxToken {
		return nil, fmt.Errorf("redlock: acquire %q: Config.Clock is beyond the year 2255, where fencing tokens end", short(key))
	}
	return &fence{
		key: slot.Sibling("redlock:fence:", name), token: token, retention: r.retention,
	}, nil
}

func (r *Redlock) micros() int64 { return r.cfg.Clock.Now().UnixMicro() }

// propose goes on with a bid whose first proposal has been decided. A node that
// reports a fence as high as what was proposed has granted that to somebody: the next
// proposal is above it, with the same value, so that nodes which granted the last one
// grant this one too. The grants of each count for themselves. A majority for an
// earlier proposal stands if a later one finds none, since that can only have made
// its keys live longer.
func (r *Redlock) propose(ctx context.Context, b *bid, cmd command) {
	for range reproposals {
		last, token := b.last(), cmd.fence.token.(int64)
		top := int64(0)
		if last.Refused() {
			top = highest(last)
		}
		if top > 0 || len(b.more) > 0 {
			r.tokens.note(cmd.resource, max(top, token), r.micros())
		}
		if top < token || r.hopeless(last) || ctx.Err() != nil {
			return
		}
		ttl := millisDuration(cmd.ttl)
		if clock.Validity(ttl, r.cfg.Clock.Now().Sub(b.first.Start()), r.cfg.Drift) <= 0 {
			return
		}
		// Never below the clock, however old the attempt: with a master that forgot
		// its fence, the clock is what the order rests on.
		next := *cmd.fence
		next.token = max(top+1, r.micros())
		cmd.fence = &next
		round := r.start(quorum.Spec[command]{Op: cmd})
		b.more = append(b.more, round)
		round.Wait(ctx)
		if round.Tally().Outcome() == quorum.Won {
			b.won = round
		}
	}
}

// highest is the highest fence that a node has reported instead of granting.
func highest(round *quorum.Round[command]) (top int64) {
	for _, b := range round.Ballots() {
		if b.Final == quorum.Refused {
			top = max(top, b.Reply)
		}
	}
	return top
}

// hopeless tells that no token would have got a majority: too many nodes have
// somebody else's key, or failed.
func (r *Redlock) hopeless(round *quorum.Round[command]) bool {
	against := 0
	for _, b := range round.Ballots() {
		if b.Vote == quorum.Failed || b.Vote == quorum.Refused && !errors.Is(b.Err, errFenced) {
			against++
		}
	}
	return against > len(r.nodes)-quorum.Size(len(r.nodes))
}

// tokens remembers the highest token seen of a key while that is ahead of this
// client's clock: afterwards the clock is higher by itself. It saves the proposals
// that would be in vain; nothing depends on it.
type tokens struct {
	mu   sync.Mutex
	seen map[string]int64
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
	return max(now, seen+1, minToken)
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
		for k, token := range t.seen {
			if token < now {
				delete(t.seen, k)
			}
		}
		if len(t.seen) >= maxSeen {
			return
		}
	}
	t.seen[key] = max(t.seen[key], token)
}
