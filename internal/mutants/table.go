package main

// mutant is a bug that a lock could have: an edit of the library's source.
type mutant struct {
	name  string
	story string // what it does wrong
	edits []edit
}

// edit replaces old, which occurs once in the file, by new.
type edit struct{ file, old, new string }

const (
	tally     = "quorum/tally.go"
	call      = "quorum/call.go"
	acquire   = "redlock/acquire.go"
	lifecycle = "redlock/lifecycle.go"
	renew     = "redlock/renew.go"
	keeper    = "redlock/keeper.go"
	command   = "redlock/command.go"
	config    = "redlock/config.go"
	random    = "redlock/random.go"
	release   = "redlock/release.lua"
	extend    = "redlock/extend.lua"
)

func one(file, old, new string) []edit { return []edit{{file, old, new}} }

var mutants = []mutant{
	{"quorum-too-small", "half of the nodes are a majority", one(tally,
		"{ return n/2 + 1 }", "{ return max(n/2, 1) }")},
	{"even-miscounted", "half of an even number of nodes is a majority", one(tally,
		"{ return n/2 + 1 }", "{ return (n + 1) / 2 }")},
	{"failure-is-a-grant", "a node whose answer was lost counts as one that granted", one(command,
		"call.Lose(shown)", "call.Grant(0)")},
	{"refusal-is-a-grant", "a nil reply to SET NX counts as a grant", one(command,
		"call.Refuse(0, errHeldHere)", "call.Grant(0)")},

	{"drift-left-out", "validity does not allow for clocks that drift", one(acquire,
		"until := round.Start().Add(ttl - r.cfg.Drift.Of(ttl))", "until := round.Start().Add(ttl)")},
	{"drift-added", "the margin for drift lengthens validity", one(acquire,
		"until := round.Start().Add(ttl - r.cfg.Drift.Of(ttl))", "until := round.Start().Add(ttl + r.cfg.Drift.Of(ttl))")},
	{"validity-after-round", "validity counts from the decision, not from before the first byte", one(acquire,
		"until := round.Start().Add(ttl - r.cfg.Drift.Of(ttl))", "until := round.Decided().Add(ttl - r.cfg.Drift.Of(ttl))")},
	{"validity-not-checked", "a lock that expired on arrival is handed out", []edit{
		{acquire, "if won && clock.Validity(ttl, round.Decided().Sub(round.Start()), r.cfg.Drift) > 0 {", "if _ = clock.Validity; won {"},
		{acquire, "if r.cfg.Clock.Now().Before(until) {", "if true {"},
	}},
	{"ttl-not-cut", "a part of a millisecond, which Redis cuts off, counts as validity", one(config,
		"ttl = ttl.Truncate(time.Millisecond)", "_ = ttl.Truncate(time.Millisecond)")},
	{"same-value-twice", "all attempts of a client have one value", []edit{
		{random, "	source *bufio.Reader\n", "	source *bufio.Reader\n	last string\n"},
		{random, "	id, err := uuid.NewRandomFromReader(r.source)\n	r.mu.Unlock()\n	return id.String(), err",
			"	defer r.mu.Unlock()\n	if r.last != \"\" {\n		return r.last, nil\n	}\n	id, err := uuid.NewRandomFromReader(r.source)\n	r.last = id.String()\n	return r.last, err"},
	}},

	{"release-without-compare", "a release deletes whatever is there", one(release,
		"if held == ARGV[1] then", "if held then")},
	{"release-of-granted-only", "nodes whose grant came after the decision are not released", one(lifecycle,
		"asked[b.Node] = b.Sent", "asked[b.Node] = b.Vote == quorum.Granted")},
	{"unsent-set-stays", "what was not sent before the release is sent after it", one(lifecycle,
		"	l.attempt.Withdraw()\n", "")},
	{"cleanup-where-granted", "a failed attempt is cleaned up only where it was granted", one(acquire,
		"		default:\n			silent[b.Node], anySilent = true, true\n", "")},
	{"cleanup-with-caller", "whoever gives up does not clean up", one(acquire,
		"	round.Withdraw()\n", "	round.Withdraw()\n	if ctx.Err() != nil {\n		return 0\n	}\n")},
	{"no-cleanup", "failed attempts leave what they have", one(acquire,
		"	round.Withdraw()\n", "	if true {\n		return 0\n	}\n	round.Withdraw()\n")},
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
	{"top-up-steals", "a top-up overwrites somebody else's key", one(command,
		"	case kindAcquire, kindTopUp:\n		args = []any{\"set\", c.key, c.value, \"nx\", \"px\", c.ttl}",
		"	case kindTopUp:\n		args = []any{\"set\", c.key, c.value, \"px\", c.ttl}\n	case kindAcquire:\n		args = []any{\"set\", c.key, c.value, \"nx\", \"px\", c.ttl}")},
	{"renewal-after-release", "a lock is renewed on after its release, as if it were held", []edit{
		{lifecycle, "	if cause := l.cause; cause != nil {\n		l.mu.Unlock()", "	if cause := l.cause; cause != nil && cause != ErrReleased {\n		l.mu.Unlock()"},
		{lifecycle, "	if l.cause == nil && !now.Before(l.until) {", "	if l.cause == nil && !now.Before(l.until) && !l.released {"},
		{keeper, "	k.renews.drop(l)\n}", "}"},
		{renew, "	if l.cause != nil {\n		return\n	}\n	if err == nil {", "	if l.cause != nil && l.cause != ErrReleased {\n		return\n	}\n	if err == nil {"},
	}},
	{"loss-told-late", "the lock's context ends 50 ms after its validity", []edit{
		{acquire, "r.keeper.endAt(lock, until)", "r.keeper.endAt(lock, until.Add(50*time.Millisecond))"},
		{lifecycle, "	if now.Before(l.until) { // it", "	if now.Before(l.until.Add(50 * time.Millisecond)) { // it"},
		{lifecycle, "		l.r.keeper.endAt(l, l.until)\n		return", "		l.r.keeper.endAt(l, l.until.Add(50*time.Millisecond))\n		return"},
	}},
	{"loss-not-told", "the lock's context does not end with its validity", one(acquire,
		"			r.keeper.endAt(lock, until)\n", "")},
}
