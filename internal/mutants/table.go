package main

import "slices"

// mutant is a bug, and the runs that may show it.
type mutant struct {
	bug
	flags []string // of the simulation, besides its seeds
	test  string   // in virtual time, of package redlock, that shows it instead
}

// bug is what a lock could do wrong: an edit of the library's source.
type bug struct {
	name  string
	story string // what it does wrong
	edits []edit
}

// mutants are all bugs.
var mutants = slices.Concat(
	in(locking),
	in(waiting),
	delaying,
	in(fenced, "--fencing"),
	in(fairlyFenced, "--fencing", "--fair"),
	in(lockedOut, "--faults", "lock-out"),
	guardedBy(guarded, "amnesia,fail-over,fail-back,pause,refuse,replace"),
	guardedBy(promoted, "fail-back"),
	guardedBy(fresh, "fail-over,replace,refuse,partition"),
	moved,
	tested,
	answering,
	ailing,
	breaking,
)

// guardedBy has all clients use the guard, against these faults.
func guardedBy(bugs []bug, faults string) []mutant {
	return in(bugs, "--guard", "--fencing=false", "--nodes", "3", "--clients", "6", "--faults", faults)
}

// in says which runs show bugs.
func in(bugs []bug, flags ...string) (all []mutant) {
	for _, b := range bugs {
		all = append(all, mutant{bug: b, flags: flags})
	}
	return all
}

// edit replaces old, which occurs once in the file, by new.
type edit struct{ file, old, new string }

const (
	tally     = "quorum/tally.go"
	call      = "quorum/call.go"
	acquire   = "redlock/acquire.go"
	attempt   = "redlock/attempt.go"
	cleanup   = "redlock/cleanup.go"
	fences    = "redlock/fence.go"
	propose   = "redlock/internal/protocol/propose.lua"
	lifecycle = "redlock/lifecycle.go"
	renew     = "redlock/renew.go"
	scheduler = "redlock/internal/schedule/schedule.go"
	timerHeap = "redlock/internal/schedule/heap.go"
	answerGo  = "redlock/internal/conn/answer.go"
	replies   = "redlock/internal/protocol/reply.go"
	config    = "redlock/config.go"
	random    = "redlock/random.go"
	release   = "redlock/internal/protocol/release.lua"
	extend    = "redlock/internal/protocol/extend.lua"
	round     = "quorum/round.go"
	waiter    = "quorum/waiter.go"
	lane      = "quorum/lane.go"
	carry     = "quorum/carry.go"
	locks     = "redlock/lock.go"
	do        = "redlock/do.go"
	turns     = "redlock/turns.go"
	pinned    = "redlock/internal/conn/pinned.go"
	wire      = "redlock/internal/conn/wire.go"
	redlock   = "redlock/redlock.go"
	skewed    = "clock/skewed.go"
	bids      = "redlock/bid.go"
	guards    = "redlock/internal/voter/guard.go"
	marker    = "redlock/internal/voter/record.go"
	errs      = "redlock/errors.go"
	verify    = "redlock/internal/conn/verify.go"
	markers   = "redlock/internal/voter/record.go"
	info      = "redlock/internal/voter/info.go"
	queue     = "redlock/internal/protocol/queue.lua"
	wake      = "redlock/internal/protocol/wake.lua"
	waits     = "redlock/wait.go"
	ear       = "redlock/ear.go"
	ears      = "redlock/ears.go"
	shards    = "redlock/shards.go"
	tickets   = "redlock/tickets.go"
	nexts     = "redlock/next.go"
	news      = "redlock/news.go"
	notices   = "redlock/notice.go"
)

func one(file, old, new string) []edit { return []edit{{file, old, new}} }

// locking are bugs of any lock.
var locking = []bug{
	{"quorum-too-small", "half of the nodes are a majority", one(tally,
		"{ return n/2 + 1 }", "{ return max(n/2, 1) }")},
	{"even-miscounted", "half of an even number of nodes is a majority", one(tally,
		"{ return n/2 + 1 }", "{ return (n + 1) / 2 }")},
	{"failure-is-a-grant", "a node whose answer was lost counts as one that granted", one(answerGo,
		"c.Lose(shown)", "c.Grant(0)")},
	{"refusal-is-a-grant", "a nil reply to SET NX counts as a grant", one(answerGo,
		"cast(c, protocol.DecodeNil(ineligible))", "c.Grant(0)")},

	{"drift-left-out", "validity does not allow for clocks that drift", one(attempt,
		"until := start.Add(ttl - r.cfg.Drift.Of(ttl))", "until := start.Add(ttl)")},
	{"drift-added", "the margin for drift lengthens validity", one(attempt,
		"until := start.Add(ttl - r.cfg.Drift.Of(ttl))", "until := start.Add(ttl + r.cfg.Drift.Of(ttl))")},
	{"validity-after-round", "validity counts from the decision, not from before the first byte", one(attempt,
		"until := start.Add(ttl - r.cfg.Drift.Of(ttl))", "until := last.Decided().Add(ttl - r.cfg.Drift.Of(ttl))")},
	{"validity-not-checked", "a lock that expired on arrival is handed out", []edit{
		{attempt, "if b.won != nil && clock.Validity(ttl, last.Decided().Sub(start), r.cfg.Drift) > 0 {", "if _, _ = clock.Validity, last; b.won != nil {"},
		{attempt, "if r.cfg.Clock.Now().Before(until) {", "if true {"},
	}},
	{"ttl-not-cut", "a part of a millisecond, which Redis cuts off, counts as validity", one(config,
		"ttl = ttl.Truncate(time.Millisecond)", "_ = ttl.Truncate(time.Millisecond)")},
	{"same-value-twice", "all attempts of a client have one value", []edit{
		{random, "	mu     sync.Mutex\n", "	mu     sync.Mutex\n	once   sync.Once\n	one    [16]byte\n"},
		{random, "	id := uuid.UUID(r.bytes)\n", "	r.once.Do(func() { r.one = r.bytes })\n	id := uuid.UUID(r.one)\n"},
	}},

	{"release-without-compare", "a release deletes whatever is there", one(release,
		"if held == ARGV[1] then", "if held then")},
	{"release-of-granted-only", "nodes whose grant came after the decision are not released", one(lifecycle,
		"asked[b.Node] = b.Sent", "asked[b.Node] = b.Vote == quorum.Granted")},
	{"unsent-set-stays", "what was not sent before the release is sent after it", one(lifecycle,
		"		l.bid.withdraw()\n", "")},
	{"cleanup-where-granted", "a failed attempt is cleaned up only where it was granted", one(cleanup,
		"		case ballot.Final != quorum.Refused || back == protocol.Dequeue:\n			silent[n], anySilent = true, true\n", "")},
	{"cleanup-with-caller", "whoever gives up does not clean up", one(cleanup,
		"	b.withdraw()\n", "	b.withdraw()\n	if ctx.Err() != nil {\n		return remains{}\n	}\n")},
	{"no-cleanup", "failed attempts leave what they have", one(cleanup,
		"	b.withdraw()\n", "	if true {\n		return remains{}\n	}\n	b.withdraw()\n")},
	{"owed-once", "a release or a clean-up that was lost is not repeated", one(call,
		"if r.kept() && now.Before(r.spec.KeepUntil) {", "if false {")},

	{"extend-recreates", "an extension puts back a key that was lost", one(extend,
		"if held ~= ARGV[1] then\n", "if not held then\n  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n  return 1\nend\nif held ~= ARGV[1] then\n")},
	{"extend-shortens", "an extension to a shorter ttl shortens the keys", one(extend,
		"if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then", "if true then")},
	{"extend-without-majority", "one node's word extends a lock", one(lifecycle,
		"case tally.Outcome() == quorum.Won:\n		// The larger", "case tally.Granted > 0:\n		// The larger")},
	{"extend-without-drift", "an extension does not allow for clocks that drift", one(lifecycle,
		"until := round.Start().Add(ttl - l.r.cfg.Drift.Of(ttl))", "until := round.Start().Add(ttl)")},
	{"extend-from-the-end", "an extension counts from its decision", one(lifecycle,
		"until := round.Start().Add(ttl - l.r.cfg.Drift.Of(ttl))", "until := round.Decided().Add(ttl - l.r.cfg.Drift.Of(ttl))")},
	{"top-up-steals", "a top-up overwrites somebody else's key", one(wire,
		"		return\n	}\n	w.number.SetVal(nil)\n",
		"		if c.kind == protocol.TopUp {\n			a[3] = \"get\"\n		}\n		return\n	}\n	w.number.SetVal(nil)\n")},
	{"renewal-after-release", "a lock is renewed on after its release, as if it were held", []edit{
		{lifecycle, "	if cause := l.cause; cause != nil {\n		l.mu.Unlock()", "	if cause := l.cause; cause != nil && cause != ErrReleased {\n		l.mu.Unlock()"},
		{lifecycle, "	if l.cause == nil && !now.Before(l.until) {", "	if l.cause == nil && !now.Before(l.until) && !l.released {"},
		{scheduler, "	s.renewals.remove(task)\n}\n\n// RenewalDone", "}\n\n// RenewalDone"},
		{renew, "	if l.cause != nil {\n		return\n	}\n	if err == nil {", "	if l.cause != nil && l.cause != ErrReleased {\n		return\n	}\n	if err == nil {"},
	}},
	{"loss-told-late", "the lock's context ends 50 ms after its validity", []edit{
		{attempt, "r.scheduler.EndAt(lock, until)", "r.scheduler.EndAt(lock, until.Add(50*time.Millisecond))"},
		{lifecycle, "	if now.Before(l.until) { // it", "	if now.Before(l.until.Add(50 * time.Millisecond)) { // it"},
		{lifecycle, "		l.r.scheduler.EndAt(l, l.until)\n		return", "		l.r.scheduler.EndAt(l, l.until.Add(50*time.Millisecond))\n		return"},
	}},
	{"loss-not-told", "the lock's context does not end with its validity", one(attempt,
		"			r.scheduler.EndAt(lock, until)\n", "")},

	{"close-drops-owed", "Close does not send what is owed", one(carry,
		"if n > 0 || due || l.closing {", "if n > 0 || due {")},
	{"late-grant-stays", "a grant that comes when the ttl should be over is not taken back", one(call,
		"r.kept() && c.sent && !now", "r.kept() && !now")},
	{"until-goes-back", "an extension to a shorter ttl moves Until back", one(lifecycle,
		"		if until.After(l.until) {\n			l.until = until", "		{\n			l.until = until")},
	{"release-nil-without-majority", "a release that too few nodes answered is said to have worked", one(locks,
		"	default:\n		return l.r.quorumError(round, ErrNoQuorum, lost)", "	case lost == nil:\n		return nil\n	default:\n		return l.r.quorumError(round, ErrNoQuorum, lost)")},
	{"release-waits-for-caller", "a release is given up with its caller's context", one(locks,
		"round.Wait(context.Background())\n	if round.Replied", "round.Wait(ctx)\n	if round.Replied")},
	{"loss-waits-for-expiry", "a lock whose key most nodes refuse to extend is not lost until its validity ends", one(lifecycle,
		"	case tally.Rejected():\n		l.lose(ErrNotHeld)\n		return l.r.quorumError(round, ErrNotHeld, nil)\n", "")},
	{"rejected-too-early", "a lock is lost when half of the nodes refuse it", one(tally,
		"return t.Refused > t.N-t.Need() }", "return t.Refused >= t.N-t.Need() && t.Refused > 0 }")},
	{"held-for-no-quorum", "too few answers are taken for somebody else's lock", one(attempt,
		"	case tally.Unavailable():\n		reason = ErrNoQuorum\n", "")},
	{"lost-not-released", "what is left of a lost lock is not released", one(lifecycle,
		"	if l.released {\n		l.mu.Unlock()", "	if l.released || l.cause != nil {\n		l.mu.Unlock()")},
	{"extension-not-outlived", "a release is owed only for as long as the first ttl", one(lifecycle,
		"	l.outlive(now.Add(within).Add(ttl)) // as the lanes may send it as late as that\n", "")},
	{"extend-ttl-not-cut", "an extension counts a part of a millisecond that Redis cuts off", one(locks,
		"	ttl, err := l.r.cfg.checkTTL(ttl)\n", "	_, err := l.r.cfg.checkTTL(ttl)\n")},
	{"extend-with-first-drift", "an extension's margin for drift is that of the first ttl", []edit{
		{lifecycle, "until := round.Start().Add(ttl - l.r.cfg.Drift.Of(ttl))", "until := round.Start().Add(ttl - l.r.cfg.Drift.Of(l.first))"},
		{locks, "until: until, ttl: ttl, keys", "until: until, ttl: ttl, first: ttl, keys"},
		{locks, "	keepAlive bool\n", "	keepAlive bool\n	first time.Duration\n"},
	}},
	{"renewed-at-the-end", "a renewal is due when the ttl is over", one(renew,
		"const renewals = 3", "const renewals = 1")},
	{"renewal-not-retried", "a renewal that found no quorum is the last", one(renew,
		"	now := l.r.cfg.Clock.Now()\n	l.r.scheduler.RenewAt(l, now.Add(min(ttl/renewals, max(minRetry, l.until.Sub(now)/renewals))))\n", "")},
	{"renewal-in-node-timeout", "a renewal that takes longer than NodeTimeout has failed", one(lifecycle,
		"	if !asked {\n		within = l.until.Sub(now)\n	}\n", "")},
	{"renewed-once", "the first renewal is the last", one(renew,
		"		l.r.scheduler.RenewAt(l, round.Start().Add(ttl/renewals))\n", "")},
	{"renews-first-ttl", "renewals go on with the first ttl", one(lifecycle,
		"	if asked {\n		l.ttl = ttl\n	}\n", "")},
	{"do-without-renewal", "Do does not renew its lock", one(do,
		"	lock.KeepAlive()\n", "")},
	{"do-not-told", "the context in Do does not end with the lock", one(do,
		"	lock.endWithLock(cancel)\n", "")},
	{"top-up-without-majority", "what a minority has is given to the others", one(lifecycle,
		"	if extension.Tally().Outcome() != quorum.Won {\n		return\n	}\n", "")},
	{"top-up-after-release", "a lock is topped up after its release", one(lifecycle,
		"	if l.cause != nil || !now.Before(l.until) {\n		l.mu.Unlock()\n		l.order.Unlock()\n		return\n	}\n	l.outlive", "	l.outlive")},
	{"top-up-not-released", "a node that has the key only from a top-up is not released", one(lifecycle,
		"	l.grown = true\n", "")},
	{"keeper-not-woken", "the keeper sleeps on when a lock ends before the others", one(scheduler,
		"if s.armed.IsZero() || t.Before(s.armed) {\n		s.armed = t\n		s.signal()", "if s.armed.IsZero() {\n		s.armed = t\n		s.signal()")},
	{"keeper-mixes-up", "the keeper mixes up its locks", one(timerHeap,
		"index, h.due(h.tasks[j]).index = i+1, j+1", "index, h.due(h.tasks[j]).index = j+1, i+1")},
	{"gives-up-without-quorum", "Acquire gives up where it should wait for a quorum", one(acquire,
		"			case now.Cause != nil:\n				return nil, now\n", "			case now.Cause != nil || now.Reason == ErrNoQuorum:\n				return nil, now\n")},
	{"does-not-give-up", "Acquire waits on when its context has ended", one(acquire,
		"	case <-ctx.Done():\n		failed.Cause", "	case <-make(chan int):\n		failed.Cause")},
	{"line-ends-with-first", "who is first in line and leaves tells nobody", one(turns,
		"	if i == 0 && l.holder == nil {\n		t.next(key, l)\n	} else if", "	if")},
	{"cleanup-owed-shortly", "a clean-up is owed for one timeout only", one(cleanup,
		"KeepUntil: r.cfg.Clock.Now().Add(ttl)}", "KeepUntil: r.cfg.Clock.Now().Add(r.cfg.NodeTimeout)}")},
	{"waits-for-the-silent", "a round waits for nodes that do not answer", one(waiter,
		"	r.Expire()\n", "")},
	{"stale-wake-up", "who was not answered in time leaves the decision's wake-up for the next to wait", one(waiter,
		"			<-w.decided // by us, or just before by somebody else\n", "")},
	{"quorum-of-the-living", "nodes that failed do not count in the majority", one(tally,
		"Need() int { return Size(t.N) }", "Need() int { return Size(t.N - t.Failed) }")},
	{"withdraw-forgets-sent", "what is under way counts as not sent when it is withdrawn", one(round,
		"c.state == queued {\n			r.count(c, Failed, 0, err)", "c.state != finished {\n			c.sent = false\n			r.count(c, Failed, 0, err)")},
	{"lost-is-unsent", "a request whose answer was lost counts as not sent", one(answerGo,
		"		c.Lose(shown)\n", "		c.Unsent(shown)\n")},
	{"unsent-release-dropped", "a release that a node did not accept is not repeated", one(call,
		"	if !r.kept() {\n		c.sent = false", "	if true {\n		c.sent = false")},
	{"unreachable-drops-owed", "what is owed to a node that refuses connections is dropped", one(call,
		"if c.state == queued && !r.kept() {", "if c.state == queued {")},
	{"owed-forgotten-by-newer", "what is owed to a node is dropped when there is more to send", one(carry,
		"		l.owed = slices.Delete(l.owed, 0, m)\n", "		if n > 0 {\n			l.batch, l.owed = l.batch[:0], nil\n		} else {\n			l.owed = slices.Delete(l.owed, 0, m)\n		}\n")},
	{"owed-waits-for-traffic", "what is owed goes only along with other operations", one(carry,
		"			l.repeat.Reset(l.retry)\n", "			_ = l.repeat\n")},
	{"batch-backwards", "a lane sends what waits in the wrong order", one(carry,
		"	return len(l.live) > 0\n", "	slices.Reverse(l.live)\n	return len(l.live) > 0\n")},
	{"dropped-sent", "an operation that its round dropped while it queued is sent all the same", one(call,
		"	if c.state != queued {\n		r.mu.Unlock()\n		return false", "	if c.state == taken {\n		r.mu.Unlock()\n		return false")},
	{"behind-dropped-forgotten", "what queues behind a dropped operation is never sent", one(carry,
		"		if c.take(now) {\n			l.live = append(l.live, c)\n		}\n", "		if !c.take(now) {\n			break\n		}\n		l.live = append(l.live, c)\n")},
	{"long-batch-backwards", "a batch of more than eight is sent in the wrong order", one(carry,
		"	return len(l.live) > 0\n", "	if len(l.live) > 8 {\n		slices.Reverse(l.live)\n	}\n	return len(l.live) > 0\n")},
	{"last-overtakes", "with more in the queue than fits into a batch, which is eight here, the last go first", []edit{
		{lane, "maxBatch = 1024", "maxBatch = 8"},
		{carry, "	l.batch = append(l.batch, l.queue[:n]...)\n", "	if k := len(l.queue) - n; k > 0 {\n		l.queue = append(slices.Clone(l.queue[k:]), l.queue[:k]...)\n	}\n	l.batch = append(l.batch, l.queue[:n]...)\n"},
	}},
	{"rest-of-queue-forgotten", "what does not fit into a batch, which is eight here, is never sent", []edit{
		{lane, "maxBatch = 1024", "maxBatch = 8"},
		{carry, "		l.queue = l.queue[n:]\n", "		l.queue = l.queue[:0]\n"},
	}},
	{"sweep-forgets-releases", "a queue of more than a batch, which is eight here, is swept of releases that are wanted", []edit{
		{lane, "maxBatch = 1024", "maxBatch = 8"},
		{lane, "		if !c.over() {\n", "		if !c.over() && !c.round.kept() {\n"},
	}},
	{"owed-behind", "what is owed goes behind what was asked later", []edit{
		{carry, "	n := min(len(l.queue), maxBatch)\n", "	n := min(len(l.queue), maxBatch)\n	var older []*Call[T]\n"},
		{carry, "		l.batch = append(l.batch, l.owed[:m]...)\n", "		older = append(older, l.owed[:m]...)\n"},
		{carry, "	l.batch = append(l.batch, l.queue[:n]...)\n", "	l.batch = append(append(l.batch, l.queue[:n]...), older...)\n"},
	}},
	{"answers-shifted", "in a batch of more than eight, each call gets the answer to the next", one(pinned,
		"switch cmd := p.wire.cmds[i]; {", "switch cmd := p.wire.cmds[(i+min(len(batch)/9, 1))%len(batch)]; {")},
	{"torn-is-granted", "calls that a torn batch left unanswered get the answer of the one before", one(pinned,
		"			ok = answer(c, cmd, err, ineligible) && ok\n", "			if i > 0 && cmd.Err() != nil && cmd.Err() == err && (cmd.text == nil) == (p.wire.cmds[i-1].text == nil) {\n				cmd = p.wire.cmds[i-1]\n				cmd.SetErr(nil)\n			}\n			ok = answer(c, cmd, err, ineligible) && ok\n")},
	{"torn-is-unsent", "calls behind the first that a torn batch left unanswered count as not sent", one(pinned,
		"		default:\n			switch {\n", "		case !ok && cmd.Err() != nil:\n			c.Unsent(cmd.Err())\n		default:\n			switch {\n")},
	{"torn-keeps-connection", "a connection whose batch was torn stays in use", one(pinned,
		"		if !ok {\n			p.quit(ctx)", "		if !ok && len(batch) == 1 {\n			p.quit(ctx)")},
	{"torn-forgets-owed", "what is owed is dropped if another call of its batch was answered", []edit{
		{carry, "	lost, silent := false, true\n", "	lost, silent := false, true\n	answered := slices.ContainsFunc(l.live, func(c *Call[T]) bool { return c.over() })\n"},
		{carry, "		if owed {\n", "		if owed && !answered {\n"},
	}},
	{"few-owed-forgotten", "of what is owed to a silent node only as much as is tried at a time, which is four here, is remembered", []edit{
		{lane, "fewOwed    = 64", "fewOwed    = 4"},
		{carry, "slices.Delete(l.owed, 0, m)", "slices.Delete(l.owed, 0, len(l.owed))"},
	}},
	{"batch-again-for-scripts", "where a server lost its scripts, the whole batch is sent again", one(pinned,
		"p.roundTrip(ctx, behind(unknown, batch))", "p.roundTrip(ctx, batch)")},
	{"stays-unreachable", "a node whose dial was refused stays unreachable until a dial works", one(carry,
		"l.over, l.pausing, l.down = false, false, nil", "l.over, l.pausing = false, false")},
	{"scripts-lost-for-good", "a server that lost its scripts is not given them again", one(pinned,
		"		clear(p.wire.loaded)\n		p.wire.whole = true\n", "")},
	{"sent-twice", "a command whose connection broke is sent again", one(wire,
		"func (*wireCmd) NoRetry() bool { return true }", "func (*wireCmd) NoRetry() bool { return false }")},
	{"close-drops-locks", "Close does not release what is held, at all", one(redlock,
		"	for _, l := range r.scheduler.Stop() {", "	for _, l := range r.scheduler.Stop()[:0] {")},
	{"release-twice", "a second release asks again, and returns what the nodes say", one(lifecycle,
		"	if l.released {\n		l.mu.Unlock()\n		l.order.Unlock()\n		return nil\n	}\n", "")},
	{"timers-inverted", "a fast clock's timers fire late", one(skewed,
		"math.Ceil(float64(d) / s.rate)", "math.Ceil(float64(d) * s.rate)")},
	{"extend-anybodys", "an extension lengthens whatever is there", one(extend,
		"if held ~= ARGV[1] then\n", "if not held then\n")},
}
