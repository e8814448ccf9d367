package quorum

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// Why a node's vote failed although nothing is known of the node.
var (
	ErrNoAnswer  = errors.New("no answer in time")
	ErrAbandoned = errors.New("no answer before the caller left")
	ErrNotSent   = errors.New("was not asked: decided before")
	ErrBacklog   = errors.New("was not asked: too many operations wait for it")
	ErrClosed    = errors.New("was not asked: closed")
)

// Spec says what a round asks and of whom.
type Spec[T any] struct {
	Op T

	// Nodes picks the nodes to ask; nil is all of them. A node that is not
	// asked counts as one that refuses.
	Nodes []bool

	// Timed notes for each vote when it came.
	Timed bool

	// All makes the round wait for every vote instead of for the first
	// moment at which a majority is certain.
	All bool

	// KeepUntil marks calls that are owed to the nodes whether or not anybody
	// still waits for them: their decision does not drop them, and a call whose
	// fate is unknown is repeated on that node until it is answered or the
	// time has come. Only for operations that may be repeated at will. Zero:
	// sent at most once, and not at all once the round is lost or out of time.
	KeepUntil time.Time

	// Decided, if set, is called once at the decision, and makes the round
	// expire by itself after the group's timeout; without it, somebody must
	// Wait. Heard, if set, is called once when every node that was asked has
	// voted or is known to have failed, Done after the last lane has finished
	// with the round. All are called with no lock held, on a lane's, a
	// timer's or the goroutine that calls Listen, never by Submit, and must
	// not block.
	Decided func(*Round[T])
	Heard   func(*Round[T])
	Done    func(*Round[T])
}

// Round is one operation's fan-out to the lanes.
type Round[T any] struct {
	spec   Spec[T]
	group  *Group[T]
	start  time.Time
	expiry clock.Timer // set for rounds with a Decided callback

	mu      sync.Mutex
	calls   []Call[T]
	tally   Tally      // frozen at the decision
	waiter  *waiter[T] // whom to wake at the decision
	end     time.Time  // when it was decided
	open    int        // calls that a lane still has
	unheard int        // calls that nothing is known of
	outcome Outcome
	deaf    bool // nobody listens yet: no decision, no callbacks

	// The calls of a group of the usual size come with the round, in one
	// allocation.
	few [5]Call[T]
}

// Ballot is one node's vote in a round and what came with it.
type Ballot struct {
	Node    int
	Vote    Vote          // as counted; Pending if the round was decided without it
	Final   Vote          // as the node said in the end, perhaps after the decision
	Reply   int64         // the number that the node answered, 0 without one
	Err     error         // why the vote failed or was refused
	Latency time.Duration // from the start of the round to the vote, if Spec.Timed
	Sent    bool          // the operation was handed to the node's connection
}

// Op is what the round asked. It must not be changed.
func (r *Round[T]) Op() *T { return &r.spec.Op }

// Start is the clock's reading from before the round was handed to any lane.
func (r *Round[T]) Start() time.Time { return r.start }

// Decided is the clock's reading at the decision; zero before it.
func (r *Round[T]) Decided() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end
}

// Tally is the count at the decision, or the count so far.
func (r *Round[T]) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// Ballots lists the votes of the nodes that were asked, in the order of the
// nodes, as they stand now.
func (r *Round[T]) Ballots() []Ballot {
	r.mu.Lock()
	defer r.mu.Unlock()
	ballots := make([]Ballot, len(r.calls))
	for i := range r.calls {
		c := &r.calls[i]
		ballots[i] = Ballot{
			Node: c.node, Vote: c.vote, Final: c.final, Reply: c.reply, Err: c.err,
			Latency: c.latency, Sent: c.sent,
		}
	}
	return ballots
}

// Refused reports whether a node has refused by now, for the decision or after it.
func (r *Round[T]) Refused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.calls {
		if r.calls[i].final == Refused {
			return true
		}
	}
	return false
}

// Replied reports whether a node has answered that number by now.
func (r *Round[T]) Replied(reply int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.calls {
		if r.calls[i].reply == reply {
			return true
		}
	}
	return false
}

// SentToAll reports that every node was asked and its lane has sent the
// operation, so that there is nothing to withdraw.
func (r *Round[T]) SentToAll() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.calls {
		if !r.calls[i].sent {
			return false
		}
	}
	return len(r.calls) == r.tally.N
}

// Wait returns when the round is decided, at the latest after the group's
// timeout or when ctx ends; nodes that have not voted by then have failed. It
// leaves the stragglers to the lanes. One goroutine at a time may wait, after
// Listen.
func (r *Round[T]) Wait(ctx context.Context) {
	r.mu.Lock()
	if r.outcome != Open {
		r.mu.Unlock()
		return
	}
	w := r.group.waiter()
	r.waiter = w
	r.mu.Unlock()
	w.wait(ctx, r)
	r.group.waiters.Put(w)
}

// Withdraw takes back what no lane has sent yet. From then on the round sends
// nothing more to any node, and Ballots says where it was sent.
func (r *Round[T]) Withdraw() {
	r.mu.Lock()
	r.drop(ErrNotSent)
	r.unlock()
}

func (r *Round[T]) kept() bool { return !r.spec.KeepUntil.IsZero() }

// Listen lets the round be decided and its callbacks be called, now if they are
// due. It must be called once after [Group.Submit].
func (r *Round[T]) Listen() {
	r.mu.Lock()
	r.deaf = false
	r.unlock()
}

// expire counts every missing vote as failed, which decides the round.
func (r *Round[T]) expire(err error) {
	r.mu.Lock()
	if r.outcome != Open {
		r.mu.Unlock()
		return
	}
	for i := range r.calls {
		r.count(&r.calls[i], Failed, 0, err)
	}
	if !r.kept() {
		r.drop(ErrNotSent)
	}
	r.unlock()
}

// drop finishes the calls that no lane has taken. The lanes skip them. Call it
// with mu held and unlock with r.unlock.
func (r *Round[T]) drop(err error) {
	for i := range r.calls {
		if c := &r.calls[i]; c.state == queued {
			r.count(c, Failed, 0, err)
			c.end(Failed)
		}
	}
}

// count adds a node's vote to the tally, if it is its first.
func (r *Round[T]) count(c *Call[T], v Vote, reply int64, err error) {
	if c.vote != Pending || c.err != nil {
		return
	}
	if r.outcome == Open {
		c.vote = v
		r.tally.Add(v)
	}
	r.unheard--
	c.reply, c.err = reply, err
	if r.spec.Timed {
		c.latency = r.group.clock.Now().Sub(r.start)
	}
}

// unlock ends a change of the votes: it takes the decision if it is due,
// releases mu, and makes the calls back that follow from the change. A lost
// round drops what was not sent: nobody wants those grants.
func (r *Round[T]) unlock() {
	if r.deaf {
		r.mu.Unlock()
		return
	}
	decides := r.outcome == Open && r.due()
	var w *waiter[T]
	if decides {
		r.end = r.group.clock.Now()
		w, r.waiter = r.waiter, nil
		if r.outcome == Lost && !r.kept() {
			r.drop(ErrNotSent)
		}
	}
	hears, ends := r.unheard == 0, r.open == 0
	if hears {
		r.unheard = -1 // said once
	}
	if ends {
		r.open = -1
	}
	r.mu.Unlock()

	if w != nil {
		w.decided <- struct{}{} // there is room: it is sent once for each use
	}
	if decides && r.spec.Decided != nil {
		r.expiry.Stop()
		r.spec.Decided(r)
	}
	if hears && r.spec.Heard != nil {
		r.spec.Heard(r)
	}
	if ends && r.spec.Done != nil {
		r.spec.Done(r)
	}
}

// due sets the outcome if the votes decide the round.
func (r *Round[T]) due() bool {
	if r.spec.All && r.tally.Pending() > 0 {
		return false
	}
	r.outcome = r.tally.Outcome()
	return r.outcome != Open
}
