package redlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/asynclog"
	"github.com/quorumlock/redlock/redlock/internal/conn"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
	"github.com/quorumlock/redlock/redlock/internal/voter"
)

// backlog is how many votes and renewals may wait for a slow Observer one by one. Further ones of
// the same kind are merged, so their memory is bounded by some megabytes. Ends of locks and quarantines
// are not merged: each end follows an acquisition, whose caller the Observer has let go.
const backlog = 1 << 14

// reporter reports to Config.Observer. A nil *reporter reports nothing.
type reporter struct {
	observer Observer
	clock    clock.Clock
	nodes    []*conn.Node
	log      *asynclog.Log
	events   *asynclog.Queue[event] // from the goroutines that must not wait for the Observer
	unused   sync.Pool              // of *observed

	mu       sync.Mutex
	votes    map[voteKind]*NodeVote      // merged
	renewals map[string]*OperationResult // merged, by Cause
}

// voteKind distinguishes the votes that are not merged with each other.
type voteKind struct {
	node int
	op   string
	vote quorum.Vote
}

// event is a vote, a renewal, or another call of the Observer.
type event struct {
	vote    quorum.Voted[protocol.Operation]
	renewal *renewal
	call    func(Observer)
}

type renewal struct {
	ctx    context.Context
	result OperationResult
}

func newReporter(cfg Config, nodes []*conn.Node, log *asynclog.Log) *reporter {
	if cfg.Observer == nil {
		return nil
	}
	t := &reporter{observer: cfg.Observer, clock: cfg.Clock, nodes: nodes, log: log}
	t.events = asynclog.NewQueue(backlog, t.pass, t.panicked)
	return t
}

// call calls the Observer, and recovers from its panic.
func (t *reporter) call(f func(Observer)) {
	if panicked := asynclog.Survive(func() { f(t.observer) }); panicked != nil {
		t.panicked(panicked)
	}
}

func (t *reporter) panicked(with any) {
	t.log.Warn("observer_panicked", "observer panicked", "error", fmt.Sprint(with))
}

// pass reports an event. The queue calls it.
func (t *reporter) pass(e *event) {
	switch {
	case e.call != nil:
		e.call(t.observer)
	case e.renewal != nil:
		t.observer.OperationEnded(e.renewal.ctx, e.renewal.result)
	default:
		ctx := e.vote.Round.Op().Context
		if ctx == nil {
			ctx = context.Background()
		}
		t.observer.NodeVoted(ctx, t.nodeVote(&e.vote))
	}
}

func (t *reporter) nodeVote(v *quorum.Voted[protocol.Operation]) NodeVote {
	op, err := v.Round.Op(), v.Err
	if v.Vote != quorum.Granted {
		err = nodeErr(err, v.Latency, v.Round.Within())
	}
	return NodeVote{
		Node: v.Node, Addr: t.nodes[v.Node].Addr, Op: op.Kind.String(), Key: op.Key,
		Vote: v.Vote, Latency: v.Latency, Err: err, Count: 1,
	}
}

// voted queues the reports of votes. Lanes call it.
func (t *reporter) voted(votes []quorum.Voted[protocol.Operation]) {
	taken := t.events.OfferAll(len(votes), func(i int, e *event) { e.vote = votes[i] })
	if taken == len(votes) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range votes[taken:] {
		vote := t.nodeVote(&votes[taken+i])
		kind := voteKind{vote.Node, vote.Op, vote.Vote}
		t.passMerged()
		if merged := t.votes[kind]; merged != nil {
			vote.Latency += merged.Latency
			vote.Count += merged.Count
		}
		vote.Key = ""
		t.votes[kind] = &vote
	}
}

// renewed queues the report of a renewal.
func (t *reporter) renewed(ctx context.Context, round *quorum.Round[protocol.Operation], ttl, left time.Duration, err error) {
	if t == nil {
		return
	}
	result := OperationResult{
		Operation: Operation{Op: OpRenew, Key: round.Op().Key, TTL: ttl, Start: round.Start()},
		Elapsed:   round.Decided().Sub(round.Start()), Rounds: 1, Left: left, Err: err, Count: 1,
		rounds: rounds{nodes: t.nodes, first: round},
	}
	if t.events.Offer(event{renewal: &renewal{ctx, result}}) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	cause := Cause(result.Err)
	t.passMerged()
	if merged := t.renewals[cause]; merged != nil {
		result.Elapsed += merged.Elapsed
		result.Left += merged.Left
		result.Rounds += merged.Rounds
		result.Count += merged.Count
	}
	result.Key, result.rounds = "", rounds{}
	t.renewals[cause] = &result
}

// passMerged queues a report of what is merged from now on, unless one is queued already. The caller
// holds mu.
func (t *reporter) passMerged() {
	if t.votes != nil {
		return
	}
	t.votes, t.renewals = map[voteKind]*NodeVote{}, map[string]*OperationResult{}
	t.events.Put(event{call: func(Observer) {
		t.mu.Lock()
		votes, renewals := t.votes, t.renewals
		t.votes, t.renewals = nil, nil
		t.mu.Unlock()
		for _, v := range votes {
			v.Latency /= time.Duration(v.Count)
			t.call(func(o Observer) { o.NodeVoted(context.Background(), *v) })
		}
		for _, r := range renewals {
			r.Elapsed /= time.Duration(r.Count)
			r.Left /= time.Duration(r.Count)
			t.call(func(o Observer) { o.OperationEnded(context.Background(), *r) })
		}
	}})
}

// lockEnded queues the report that the lock has just ended, also for a caller that holds its mutexes.
func (t *reporter) lockEnded(l *Lock, cause error) {
	if t == nil {
		return
	}
	ctx, end := l.values, l.endedBy(cause, t.clock.Now())
	t.events.Put(event{call: func(o Observer) { o.LockEnded(ctx, end) }})
}

// released reports, on the caller's goroutine, the end of a lock that its holder has released.
func (t *reporter) released(ctx context.Context, end LockEnd) {
	t.call(func(o Observer) { o.LockEnded(ctx, end) })
}

// quarantine queues the report of the beginning or the end of a quarantine.
func (t *reporter) quarantine(q voter.Quarantine) {
	report := Quarantine{Node: q.Node, Addr: t.nodes[q.Node].Addr, Server: q.Addr, Until: q.Until, Why: q.Why}
	t.events.Put(event{call: func(o Observer) {
		if q.Over {
			o.QuarantineEnded(report)
		} else {
			o.QuarantineBegan(report)
		}
	}})
}

// close returns when everything that happened until now is reported; see asynclog.Queue.Close.
func (t *reporter) close() {
	if t != nil {
		t.events.Close(t.clock)
	}
}

// observed is an operation that is reported to the Observer. For a nil *observed, decided does
// nothing: the operation is not reported.
//
// While the operation is under way, observed only records it. Close waits for the operation, and a lock
// for its release, so the operation must not wait for the Observer.
type observed struct {
	t      *reporter
	ctx    context.Context
	op     Operation
	count  int // of rounds
	rounds rounds
	waited time.Duration // OperationResult.Waited
	left   time.Duration // OperationResult.Left
}

// observe returns an operation that began at start, or now if start is zero. ended reports it.
func (t *reporter) observe(ctx context.Context, op, key string, ttl time.Duration, start time.Time) *observed {
	if t == nil {
		return nil
	}
	if start.IsZero() {
		start = t.clock.Now()
	}
	o, _ := t.unused.Get().(*observed)
	if o == nil {
		o = new(observed)
	}
	*o = observed{t: t, ctx: ctx, op: Operation{Op: op, Key: key, TTL: ttl, Start: start}, rounds: rounds{nodes: t.nodes}}
	return o
}

// acquire reports that an acquisition begins.
func (t *reporter) acquire(ctx context.Context, key string, ttl time.Duration) *observed {
	if t == nil {
		return nil
	}
	o := t.observe(ctx, OpAcquire, key, ttl, time.Time{})
	t.call(func(observer Observer) {
		if returned := observer.AcquireBegan(ctx, o.op); returned != nil {
			o.ctx = returned
		}
	})
	return o
}

// decided records a round that was decided.
func (o *observed) decided(round *quorum.Round[protocol.Operation]) {
	if o == nil {
		return
	}
	o.count++
	o.rounds.add(round)
}

// ended reports that the operation ended at now; o is then used for another one. It must not be called
// between enter and operations.Done.
func (o *observed) ended(now time.Time, err error) {
	t, ctx := o.t, o.ctx
	result := OperationResult{
		Operation: o.op, Elapsed: now.Sub(o.op.Start), Waited: o.waited, Rounds: o.count, Left: o.left,
		Err: err, Count: 1, rounds: o.rounds,
	}
	*o = observed{}
	t.unused.Put(o)
	t.call(func(observer Observer) { observer.OperationEnded(ctx, result) })
}

// rounds are the last maxTraces rounds of an operation.
type rounds struct {
	nodes []*conn.Node
	first *quorum.Round[protocol.Operation] // mostly there is no other
	later []*quorum.Round[protocol.Operation]
}

// maxTraces bounds how many rounds of a long wait are kept for OperationResult.Traces.
const maxTraces = 32

func (r *rounds) add(round *quorum.Round[protocol.Operation]) {
	switch {
	case r.first == nil:
		r.first = round
		return
	case len(r.later) == maxTraces-1:
		r.first = r.later[0]
		r.later = append(r.later[:0], r.later[1:]...)
	}
	r.later = append(r.later, round)
}

// traces describes the rounds. A vote that has decided its round may not have been timed yet; it came
// no later than the decision.
func (r rounds) traces() []Trace {
	if r.first == nil {
		return nil
	}
	traces := []Trace{traceOf(r.nodes, r.first)}
	for _, round := range r.later {
		traces = append(traces, traceOf(r.nodes, round))
	}
	for _, trace := range traces {
		for n := range trace.Nodes {
			if node := &trace.Nodes[n]; node.Latency == 0 && node.Vote != quorum.Pending {
				node.Latency = trace.Elapsed
			}
		}
	}
	return traces
}
