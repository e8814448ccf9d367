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

	// ErrVotedTwice: the voter has granted this round for another node.
	ErrVotedTwice = errors.New("has voted as another node")
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

	// Sure makes a round that cannot be won any more wait for the votes that may yet
	// show that it is [Tally.Rejected]. Asking again meanwhile would be in vain: without
	// those votes, the nodes that granted and those that failed are no majority either.
	Sure bool

	// Within is how long the round may stay undecided; zero is the group's timeout. A
	// node's vote counts whenever it comes before that. A call that its lane has not
	// sent by then is dropped, and so is one that is not sent within the group's
	// timeout of the decision: a node that far behind the others must not collect the
	// rounds that they have decided.
	Within time.Duration

	// KeepUntil marks calls that are owed to the nodes whether or not anybody
	// still waits for them: their decision does not drop them, and a call whose
	// fate is unknown is repeated on that node until it is answered or the
	// time has come. Only for operations that may be repeated at will. Zero:
	// sent at most once, and not at all once the round is lost or out of time. The
	// vote of a call whose fate is unknown has failed only when its node is known to
	// be out of reach, or the round's time is over.
	KeepUntil time.Time

	// Decided, if set, is called once at the decision, and makes the round
	// expire by itself when Within is over; without it, somebody must
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
	left    bool // the caller has left, which decided it

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

// Within is how long the round may stay undecided, from Start.
func (r *Round[T]) Within() time.Duration { return r.spec.Within }

// Decided is the clock's reading at the decision; zero before it.
func (r *Round[T]) Decided() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end
}

// Tally is the count at the decision, or the count so far. The tally of a round that
// its caller left is open.
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

// Wait returns when the round is decided, at the latest when [Spec.Within]
// is over or when ctx ends. Nodes that have not voted when the time is over have
// failed. Of nodes that have not voted when ctx ends nothing is known: their votes
// stay pending, with ErrAbandoned. Wait leaves the stragglers to the lanes. One
// goroutine at a time may wait, after Listen.
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

// remaining is the time that the round may still stay undecided.
func (r *Round[T]) remaining() time.Duration {
	return r.spec.Within - r.group.clock.Now().Sub(r.start)
}

// stale reports that what no lane has sent by now shall not be sent at all; mu is held.
func (r *Round[T]) stale(now time.Time) bool {
	return now.Sub(r.start) >= r.spec.Within ||
		r.outcome != Open && now.Sub(r.end) >= r.group.timeout
}

// Expire ends the round's time: every missing vote has failed, which decides the
// round. It does nothing to a round that has been decided.
func (r *Round[T]) Expire() { r.stop(false) }

// abandon decides the round because its caller leaves. A missing vote is no failure
// of its node, so it is not counted.
func (r *Round[T]) abandon() { r.stop(true) }

func (r *Round[T]) stop(left bool) {
	r.mu.Lock()
	if r.outcome != Open {
		r.mu.Unlock()
		return
	}
	r.left = left
	for i := range r.calls {
		switch c := &r.calls[i]; {
		case !left:
			r.count(c, Failed, 0, ErrNoAnswer)
		default:
			r.count(c, Pending, 0, ErrAbandoned)
		}
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

// count adds a node's vote to the tally, if it is its first. Two majorities share a
// node, and so exclude each other, only if no two nodes of a majority are one voter.
//
// What is known of a call that was lost is why. That its node refuses the repetition is
// no evidence: it may have done it the first time.
func (r *Round[T]) count(c *Call[T], v Vote, reply int64, err error) {
	if c.counted {
		return
	}
	c.counted = true
	switch {
	case v == Granted && r.granted(c.voter):
		v, err = Failed, ErrVotedTwice
	case !c.lost:
	case v == Refused:
		v, err = Failed, c.err
	case err == ErrNoAnswer || err == ErrNotSent:
		err = c.err
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

// granted reports whether the voter's grant is counted already.
func (r *Round[T]) granted(voter Voter) bool {
	if voter == (Voter{}) {
		return false
	}
	for i := range r.calls {
		if c := &r.calls[i]; c.vote == Granted && c.voter == voter {
			return true
		}
	}
	return false
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
	wanting := false
	var w *waiter[T]
	if decides {
		r.end = r.group.clock.Now()
		w, r.waiter = r.waiter, nil
		wanting = r.tally.Unavailable()
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

	if wanting {
		r.group.hurry()
	}
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
	if r.spec.All && r.tally.Pending() > 0 && !r.left {
		return false
	}
	r.outcome = r.tally.Outcome()
	if r.spec.Sure && r.outcome == Lost && r.tally.unsure() && !r.left {
		r.outcome = Open
	}
	if r.left && r.outcome == Open {
		r.outcome = Lost
	}
	return r.outcome != Open
}
