package main

import "slices"

// mutant is a bug, and the runs that may show it.
type mutant struct {
	bug
	flags []string // of the simulation, besides its seeds
	test  string   // the test of package redlock, in virtual time, that shows it instead
}

// bug is something that a lock could do wrong, as an edit of the library's source.
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

// guardedBy returns mutants for which all clients use the guard, against these faults.
func guardedBy(bugs []bug, faults string) []mutant {
	return in(bugs, "--guard", "--fencing=false", "--nodes", "3", "--clients", "6", "--faults", faults)
}

// in returns the bugs as mutants, with these flags for the runs.
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
	attempt   = "redlock/tryacquire.go"
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
	local     = "redlock/internal/waitqueue/local.go"
	pinned    = "redlock/internal/conn/pinned.go"
	wire      = "redlock/internal/conn/wire.go"
	redlock   = "redlock/redlock.go"
	skewed    = "clock/skewed.go"
	proposals = "redlock/proposals.go"
	guards    = "redlock/internal/voter/guard.go"
	marker    = "redlock/internal/voter/record.go"
	errs      = "redlock/errors.go"
	verify    = "redlock/internal/conn/verify.go"
	markers   = "redlock/internal/voter/record.go"
	info      = "redlock/internal/voter/info.go"
	queue     = "redlock/internal/protocol/queue.lua"
	wake      = "redlock/internal/protocol/wake.lua"
	waits     = "redlock/wait.go"
	ear       = "redlock/internal/wakeup/subscription.go"
	ears      = "redlock/internal/wakeup/subscriber.go"
	shards    = "redlock/internal/wakeup/shards.go"
	tickets   = "redlock/internal/waitqueue/tickets.go"
	nexts     = "redlock/internal/waitqueue/next.go"
	heard     = "redlock/internal/waitqueue/heard.go"
	notices   = "redlock/broken.go"
)

func one(file, old, new string) []edit { return []edit{{file, old, new}} }

// locking are bugs of any lock.
var locking = []bug{
	{"quorum-too-small", "half of the nodes count as a majority", one(tally,
		"{ return n/2 + 1 }", "{ return max(n/2, 1) }")},
	{"even-miscounted", "half of an even number of nodes counts as a majority", one(tally,
		"{ return n/2 + 1 }", "{ return (n + 1) / 2 }")},
	{"failure-is-a-grant", "a node whose answer was lost counts as granted", one(answerGo,
		"c.Lose(shown)", "c.Grant(0)")},
	{"refusal-is-a-grant", "a nil reply to SET NX counts as a grant", one(answerGo,
		"cast(c, protocol.DecodeNil(ineligible))", "c.Grant(0)")},

	{"drift-left-out", "validity does not allow for clock drift", one(attempt,
		"start.Add(a.ttl-r.cfg.Drift.Of(a.ttl))", "start.Add(a.ttl)")},
	{"drift-added", "the margin for drift lengthens validity", one(attempt,
		"start.Add(a.ttl-r.cfg.Drift.Of(a.ttl))", "start.Add(a.ttl+r.cfg.Drift.Of(a.ttl))")},
	{"validity-after-round", "validity counts from the decision, not from before the first byte", one(attempt,
		"start.Add(a.ttl-r.cfg.Drift.Of(a.ttl))", "a.last().Decided().Add(a.ttl-r.cfg.Drift.Of(a.ttl))")},
	{"validity-not-checked", "a lock that has already expired is handed out", []edit{
		{attempt, "if a.won != nil && clock.Validity(a.ttl, a.last().Decided().Sub(start), r.cfg.Drift) > 0 {", "if a.won != nil {"},
		{attempt, "if r.cfg.Clock.Now().Before(lock.until) {", "if true {"},
	}},
	{"ttl-not-cut", "validity includes the fraction of a millisecond that Redis cuts off", one(config,
		"ttl = ttl.Truncate(time.Millisecond)", "_ = ttl.Truncate(time.Millisecond)")},
	{"same-value-twice", "all attempts of a client use the same lock value", []edit{
		{random, "	mu     sync.Mutex\n", "	mu     sync.Mutex\n	once   sync.Once\n	one    [16]byte\n"},
		{random, "	id := uuid.UUID(r.bytes)\n", "	r.once.Do(func() { r.one = r.bytes })\n	id := uuid.UUID(r.one)\n"},
	}},

	{"release-without-compare", "a release deletes the key whatever its value", one(release,
		"if held == ARGV[1] then", "if held then")},
	{"release-of-granted-only", "a release skips nodes whose grant came after the decision", one(lifecycle,
		"asked[b.Node] = b.Sent", "asked[b.Node] = b.Vote == quorum.Granted")},
	{"unsent-set-stays", "a SET that was still queued at the release is sent after it", one(lifecycle,
		"		l.withdraw()\n", "")},
	{"cleanup-where-granted", "a failed attempt is cleaned up only on nodes that granted it", one(cleanup,
		"		case ballot.Final != quorum.Refused || removes:\n			silent[n], anySilent = true, true\n", "")},
	{"cleanup-with-caller", "an attempt whose caller gave up is not cleaned up", one(cleanup,
		"	a.withdraw()\n", "	a.withdraw()\n	if ctx.Err() != nil {\n		return\n	}\n")},
	{"no-cleanup", "failed attempts are not cleaned up", one(cleanup,
		"	a.withdraw()\n", "	if true {\n		return\n	}\n	a.withdraw()\n")},
	{"owed-once", "a lost release or clean-up is not repeated", one(call,
		"if r.kept() && now.Before(r.spec.KeepUntil) {", "if false {")},

	{"extend-recreates", "an extension recreates a key that was lost", one(extend,
		"if held ~= ARGV[1] then\n", "if not held then\n  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n  return 1\nend\nif held ~= ARGV[1] then\n")},
	{"extend-shortens", "an extension to a shorter ttl shortens the keys", one(extend,
		"if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then", "if true then")},
	{"extend-without-majority", "a grant from one node extends a lock", one(lifecycle,
		"case tally.Outcome() == quorum.Won:\n		// The larger", "case tally.Granted > 0:\n		// The larger")},
	{"extend-without-drift", "an extension does not allow for clock drift", one(lifecycle,
		"until := round.Start().Add(ttl - l.r.cfg.Drift.Of(ttl))", "until := round.Start().Add(ttl)")},
	{"extend-from-the-end", "the validity of an extension counts from its decision", one(lifecycle,
		"until := round.Start().Add(ttl - l.r.cfg.Drift.Of(ttl))", "until := round.Decided().Add(ttl - l.r.cfg.Drift.Of(ttl))")},
	{"top-up-steals", "a top-up overwrites another client's key", one(wire,
		"		return\n	}\n	w.number.SetVal(nil)\n",
		"		if c.Kind == protocol.TopUp {\n			a[3] = \"get\"\n		}\n		return\n	}\n	w.number.SetVal(nil)\n")},
	{"renewal-after-release", "a lock is still renewed after its release", []edit{
		{lifecycle, "	if cause := l.cause; cause != nil {\n		l.mu.Unlock()", "	if cause := l.cause; cause != nil && cause != ErrReleased {\n		l.mu.Unlock()"},
		{lifecycle, "	if l.cause == nil && !now.Before(l.until) {", "	if l.cause == nil && !now.Before(l.until) && !l.released {"},
		{scheduler, "	s.renewals.remove(task)\n}\n\n// RenewalDone", "}\n\n// RenewalDone"},
		{renew, "	if l.cause != nil {\n		return\n	}\n	if err == nil {", "	if l.cause != nil && l.cause != ErrReleased {\n		return\n	}\n	if err == nil {"},
	}},
	{"loss-told-late", "the lock's context ends 50 ms after its validity", []edit{
		{attempt, "r.scheduler.EndAt(lock, lock.until)", "r.scheduler.EndAt(lock, lock.until.Add(50*time.Millisecond))"},
		{lifecycle, "	if now.Before(l.until) { // it", "	if now.Before(l.until.Add(50 * time.Millisecond)) { // it"},
		{lifecycle, "		l.r.scheduler.EndAt(l, l.until)\n		return", "		l.r.scheduler.EndAt(l, l.until.Add(50*time.Millisecond))\n		return"},
	}},
	{"loss-not-told", "the lock's context does not end with its validity", one(attempt,
		"			r.scheduler.EndAt(lock, lock.until)\n", "")},

	{"close-drops-owed", "Close does not send pending deliveries", one(carry,
		"if n > 0 || due || l.closing {", "if n > 0 || due {")},
	{"late-grant-stays", "an unsent clean-up is dropped when the ttl should be over, so a late grant stays", one(call,
		"r.kept() && c.sent && !now", "r.kept() && !now")},
	{"until-goes-back", "an extension to a shorter ttl moves Until back", one(lifecycle,
		"		if until.After(l.until) {\n			l.until = until", "		{\n			l.until = until")},
	{"release-nil-without-majority", "Release returns nil although too few nodes answered", one(locks,
		"	default:\n		return l.r.quorumError(round, ErrNoQuorum, lost)", "	case lost == nil:\n		return nil\n	default:\n		return l.r.quorumError(round, ErrNoQuorum, lost)")},
	{"release-waits-for-caller", "a release ends when its caller's context does", one(locks,
		"round.Wait(context.Background())\n	if round.Replied", "round.Wait(ctx)\n	if round.Replied")},
	{"loss-waits-for-expiry", "a lock that most nodes refuse to extend stays valid until it expires", one(lifecycle,
		"	case tally.Rejected():\n		l.lose(ErrNotHeld)\n		return l.r.quorumError(round, ErrNotHeld, nil)\n", "")},
	{"rejected-too-early", "a lock is lost one refusal too early", one(tally,
		"return t.Refused > t.N-t.Need() }", "return t.Refused >= t.N-t.Need() && t.Refused > 0 }")},
	{"held-for-no-quorum", "too few answers are reported as another client's lock", one(attempt,
		"	case tally.Unavailable():\n		return ErrNoQuorum, last\n", "")},
	{"lost-not-released", "the keys that are left of a lost lock are not released", one(lifecycle,
		"	if l.released {\n		l.mu.Unlock()", "	if l.released || l.cause != nil {\n		l.mu.Unlock()")},
	{"extension-not-outlived", "a lost release of an extended lock is repeated only for the first ttl", one(lifecycle,
		"	l.outlive(now.Add(within).Add(ttl)) // as the lanes may send it as late as that\n", "")},
	{"extend-ttl-not-cut", "an extension includes the fraction of a millisecond that Redis cuts off", one(locks,
		"	ttl, err := l.r.cfg.checkTTL(ttl)\n", "	_, err := l.r.cfg.checkTTL(ttl)\n")},
	{"extend-with-first-drift", "an extension uses the drift margin of the first ttl", []edit{
		{lifecycle, "until := round.Start().Add(ttl - l.r.cfg.Drift.Of(ttl))", "until := round.Start().Add(ttl - l.r.cfg.Drift.Of(l.firstTTL))"},
		{attempt, "until: until, ttl: a.ttl, keys", "until: until, ttl: a.ttl, firstTTL: a.ttl, keys"},
		{locks, "	keepAlive bool\n", "	keepAlive bool\n	firstTTL  time.Duration\n"},
	}},
	{"renewed-at-the-end", "a renewal is due only when the ttl is over", one(renew,
		"const renewals = 3", "const renewals = 1")},
	{"renewal-not-retried", "a renewal that found no quorum is not retried", one(renew,
		"	now := l.r.cfg.Clock.Now()\n	l.r.scheduler.RenewAt(l, now.Add(min(ttl/renewals, max(minRetry, l.until.Sub(now)/renewals))))\n", "")},
	{"renewal-in-node-timeout", "a renewal fails when it takes longer than NodeTimeout", one(lifecycle,
		"	if !asked {\n		within = l.until.Sub(now)\n	}\n", "")},
	{"renewed-once", "a lock is renewed only once", one(renew,
		"		l.r.scheduler.RenewAt(l, round.Start().Add(ttl/renewals))\n", "")},
	{"renews-first-ttl", "renewals keep the first ttl after an extension to another", one(lifecycle,
		"	if asked {\n		l.ttl = ttl\n	}\n", "")},
	{"do-without-renewal", "Do does not renew its lock", one(do,
		"	lock.KeepAlive()\n", "")},
	{"do-not-told", "the context in Do is not connected to the lock's end", one(do,
		"	lock.endWithLock(cancel)\n", "")},
	{"top-up-without-majority", "an extension without a majority is topped up on other nodes", one(lifecycle,
		"	if extension.Tally().Outcome() != quorum.Won {\n		return\n	}\n", "")},
	{"top-up-after-release", "a lock is topped up after its release", one(lifecycle,
		"	if l.cause != nil || !now.Before(l.until) {\n		l.mu.Unlock()\n		l.order.Unlock()\n		return\n	}\n	l.outlive", "	l.outlive")},
	{"top-up-not-released", "a node that has the key only from a top-up is not released", one(lifecycle,
		"	l.toppedUp = true\n", "")},
	{"keeper-not-woken", "the scheduler sleeps on when a new lock ends before the others", one(scheduler,
		"if s.armed.IsZero() || t.Before(s.armed) {\n		s.armed = t\n		s.signal()", "if s.armed.IsZero() {\n		s.armed = t\n		s.signal()")},
	{"keeper-mixes-up", "the scheduler mixes up the entries of its timer heap", one(timerHeap,
		"index, h.due(h.tasks[j]).index = i+1, j+1", "index, h.due(h.tasks[j]).index = j+1, i+1")},
	{"gives-up-without-quorum", "Acquire gives up where it should wait for a quorum", one(acquire,
		"	case failed.Cause != nil:\n		failed.Reason =", "	case failed.Cause != nil || failed.Reason == ErrNoQuorum:\n		failed.Reason =")},
	{"does-not-give-up", "Acquire keeps waiting after its context has ended", one(acquire,
		"	case <-ctx.Done():\n		return a.end", "	case <-make(chan int):\n		return a.end")},
	{"line-ends-with-first", "when the first waiter leaves the local queue, the next is not started", one(local,
		"(i == 0 || len(q.callers) == 0)", "len(q.callers) == 0")},
	{"cleanup-owed-shortly", "a lost clean-up is repeated for only one NodeTimeout", one(cleanup,
		"KeepUntil: r.cfg.Clock.Now().Add(a.ttl)}", "KeepUntil: r.cfg.Clock.Now().Add(r.cfg.NodeTimeout)}")},
	{"waits-for-the-silent", "a round waits for nodes that do not answer", one(waiter,
		"	r.Expire()\n", "")},
	{"quorum-of-the-living", "a majority of the nodes that have not failed is enough", one(tally,
		"Need() int { return Size(t.N) }", "Need() int { return Size(t.N - t.Failed) }")},
	{"withdraw-forgets-sent", "withdrawing an operation that is under way marks it as not sent", one(round,
		"c.state == queued {\n			r.count(c, Failed, 0, err)", "c.state != finished {\n			c.sent = false\n			r.count(c, Failed, 0, err)")},
	{"lost-is-unsent", "a request whose answer was lost counts as not sent", one(answerGo,
		"		c.Lose(shown)\n", "		c.Unsent(shown)\n")},
	{"unsent-release-dropped", "a release that a node did not accept is not repeated", one(call,
		"	if !r.kept() {\n		c.sent = false", "	if true {\n		c.sent = false")},
	{"unreachable-drops-owed", "pending deliveries to a node that refuses connections are dropped", one(call,
		"if c.state == queued && !r.kept() {", "if c.state == queued {")},
	{"owed-forgotten-by-newer", "pending deliveries to a node are dropped when there is more to send", one(carry,
		"		l.owed = slices.Delete(l.owed, 0, m)\n", "		if n > 0 {\n			l.batch, l.owed = l.batch[:0], nil\n		} else {\n			l.owed = slices.Delete(l.owed, 0, m)\n		}\n")},
	{"owed-waits-for-traffic", "pending deliveries go only together with other operations", one(carry,
		"			l.repeat.Reset(l.retry)\n", "			_ = l.repeat\n")},
	{"batch-backwards", "a lane sends each batch in reverse order", one(carry,
		"	return len(l.live) > 0\n", "	slices.Reverse(l.live)\n	return len(l.live) > 0\n")},
	{"dropped-sent", "an operation that its round dropped from the queue is sent anyway", one(call,
		"	if c.state != queued {\n		r.mu.Unlock()\n		return false", "	if c.state == taken {\n		r.mu.Unlock()\n		return false")},
	{"behind-dropped-forgotten", "operations queued behind a dropped one are never sent", one(carry,
		"		if c.take(now) {\n			l.live = append(l.live, c)\n		}\n", "		if !c.take(now) {\n			break\n		}\n		l.live = append(l.live, c)\n")},
	{"long-batch-backwards", "a batch of more than eight is sent in reverse order", one(carry,
		"	return len(l.live) > 0\n", "	if len(l.live) > 8 {\n		slices.Reverse(l.live)\n	}\n	return len(l.live) > 0\n")},
	{"last-overtakes", "when the queue exceeds a batch (eight here), the last operations go first", []edit{
		{lane, "maxBatch = 1024", "maxBatch = 8"},
		{carry, "	l.batch = append(l.batch, l.queue[:n]...)\n", "	if k := len(l.queue) - n; k > 0 {\n		l.queue = append(slices.Clone(l.queue[k:]), l.queue[:k]...)\n	}\n	l.batch = append(l.batch, l.queue[:n]...)\n"},
	}},
	{"rest-of-queue-forgotten", "operations that do not fit into a batch (eight here) are never sent", []edit{
		{lane, "maxBatch = 1024", "maxBatch = 8"},
		{carry, "		l.queue = l.queue[n:]\n", "		l.queue = l.queue[:0]\n"},
	}},
	{"sweep-forgets-releases", "the sweep of a queue longer than a batch (eight here) drops wanted releases", []edit{
		{lane, "maxBatch = 1024", "maxBatch = 8"},
		{lane, "		if !c.over() {\n", "		if !c.over() && !c.round.kept() {\n"},
	}},
	{"owed-behind", "pending deliveries go behind newer operations", []edit{
		{carry, "	n := min(len(l.queue), maxBatch)\n", "	n := min(len(l.queue), maxBatch)\n	var older []*Call[T]\n"},
		{carry, "		l.batch = append(l.batch, l.owed[:m]...)\n", "		older = append(older, l.owed[:m]...)\n"},
		{carry, "	l.batch = append(l.batch, l.queue[:n]...)\n", "	l.batch = append(append(l.batch, l.queue[:n]...), older...)\n"},
	}},
	{"answers-shifted", "in a batch of more than eight, each call gets the next call's answer", one(pinned,
		"switch cmd := p.wire.cmds[i]; {", "switch cmd := p.wire.cmds[(i+min(len(batch)/9, 1))%len(batch)]; {")},
	{"torn-is-granted", "a call that a torn batch left unanswered gets the previous answer", one(pinned,
		"			ok = answer(c, cmd, err, ineligible) && ok\n", "			if i > 0 && cmd.Err() != nil && cmd.Err() == err && (cmd.text == nil) == (p.wire.cmds[i-1].text == nil) {\n				cmd = p.wire.cmds[i-1]\n				cmd.SetErr(nil)\n			}\n			ok = answer(c, cmd, err, ineligible) && ok\n")},
	{"torn-is-unsent", "all but the first call that a torn batch left unanswered count as not sent", one(pinned,
		"		default:\n			switch {\n", "		case !ok && cmd.Err() != nil:\n			c.Unsent(cmd.Err())\n		default:\n			switch {\n")},
	{"torn-keeps-connection", "a connection whose batch was torn stays in use", one(pinned,
		"		if !ok {\n			p.quit(ctx)", "		if !ok && len(batch) == 1 {\n			p.quit(ctx)")},
	{"torn-forgets-owed", "a pending delivery is dropped if another call of its batch was answered", []edit{
		{carry, "	lost, silent := false, true\n", "	lost, silent := false, true\n	answered := slices.ContainsFunc(l.live, func(c *Call[T]) bool { return c.over() })\n"},
		{carry, "		if owed {\n", "		if owed && !answered {\n"},
	}},
	{"few-owed-forgotten", "pending deliveries to a silent node are forgotten, except those tried first (four here)", []edit{
		{lane, "fewOwed    = 64", "fewOwed    = 4"},
		{carry, "slices.Delete(l.owed, 0, m)", "slices.Delete(l.owed, 0, len(l.owed))"},
	}},
	{"batch-again-for-scripts", "when a server has lost its scripts, the whole batch is sent again", one(pinned,
		"p.roundTrip(ctx, behind(unknown, batch))", "p.roundTrip(ctx, batch)")},
	{"stays-unreachable", "a node that refused a dial counts as unreachable until a dial works", one(carry,
		"l.over, l.pausing, l.down = false, false, nil", "l.over, l.pausing = false, false")},
	{"sent-twice", "a command whose connection broke is sent again", one(wire,
		"func (*wireCmd) NoRetry() bool { return true }", "func (*wireCmd) NoRetry() bool { return false }")},
	{"close-drops-locks", "Close releases no lock that is held", one(redlock,
		"	for _, l := range r.scheduler.Stop() {", "	for _, l := range r.scheduler.Stop()[:0] {")},
	{"release-twice", "a second Release asks the nodes again and returns their answer", one(lifecycle,
		"	if l.released {\n		l.mu.Unlock()\n		l.order.Unlock()\n		return nil\n	}\n", "")},
	{"timers-inverted", "the timers of a fast clock fire late", one(skewed,
		"math.Ceil(float64(d) / s.rate)", "math.Ceil(float64(d) * s.rate)")},
	{"extend-anybodys", "an extension lengthens the key whatever its value", one(extend,
		"if held ~= ARGV[1] then\n", "if not held then\n")},
}
