package main

// fenced are bugs of fencing tokens.
var fenced = []bug{
	{"fence-not-raised", "a node does not remember the token that it grants", one(propose,
		"  if highest and highest >= 0 and highest < tonumber(ARGV[3]) then\n    return 1", "  if highest and highest >= 0 and highest < tonumber(ARGV[3]) then\n    redis.call('DEL', KEYS[2])\n    return 1")},
	{"fence-ignored", "a node grants whatever is proposed", one(propose,
		"  if highest and highest >= 0 and highest < tonumber(ARGV[3]) then\n    return 1", "  if true then\n    return 1")},
	{"equal-token-granted", "a node grants a token that it has granted before", one(propose,
		"highest < tonumber(ARGV[3]) then", "highest <= tonumber(ARGV[3]) then")},
	{"fence-lowered", "an extension sets the fence to its own token, however high it was", one(extend,
		"  if highest < tonumber(ARGV[3]) then", "  if true then")},
	{"fence-dies-with-lock", "the fence is kept for no longer than the key", one(propose,
		"redis.pcall('SET', KEYS[2], ARGV[3], 'PX', ARGV[4], 'GET')", "redis.pcall('SET', KEYS[2], ARGV[3], 'PX', ARGV[2], 'GET')")},
	{"proposes-the-same", "a proposal that is refused is made again as it was", one(fences,
		"max(top+1, now.UnixMicro())", "max(top, 1)")},
	{"later-token-handed-out", "the token is that of the last proposal, also if an earlier one won", one(locks,
		"cmd := b.won.Op()", "cmd := b.last().Op()")},
	{"proposals-added-up", "grants of different proposals are added up", one(fences,
		"if last.Tally().Outcome() == quorum.Won && r.fresh(last) {", "if last.Tally().Granted+b.first.Tally().Granted >= last.Tally().Need() {")},
	{"fenced-validity-from-last", "validity counts from the last proposal", one(attempt,
		"start, last := b.first.Start(), b.last()", "start, last := b.last().Start(), b.last()")},
	{"first-proposal-stays", "what only the first proposal was granted is not cleaned up", one(bids,
		"	ballots := b.first.Ballots()\n", "	ballots := b.last().Ballots()\n")},
	{"fence-kept-for-shorter", "a grant keeps the fence for as long as its client says, though another's is kept for longer", one(propose,
		"local keep = left == -1 or left > tonumber(ARGV[4])", "local keep = false")},
	{"queue-keeps-for-shorter", "the same in a try from the queue", one(queue,
		"if left == -1 or left > tonumber(ARGV[8]) then", "if false then")},
	{"extend-keeps-for-shorter", "the same in an extension", one(extend,
		"if left == -1 or left > tonumber(ARGV[4]) then", "if false then")},
	{"held-fence-is-a-grant", "a key that somebody else has is granted if the token is higher", one(propose,
		"  return -highest\n", "  if highest < token then\n    return 1\n  end\n  return -highest\n")},
}

// fairlyFenced are bugs of fencing tokens where all clients are fair.
var fairlyFenced = []bug{
	{"newcomer-below-the-fence", "a newcomer whose token is too low is refused a free key, as if somebody were ahead", one(queue,
		"  if verdict ~= 3 then\n", "  if verdict ~= 3 or me == '' then\n")},
}

// guarded are bugs of the restart guard.
var guarded = []bug{
	{"no-quarantine", "a server that may have forgotten votes at once", one(guards,
		"if until := s.quarantine(); sent.Before(until) {\n		return", "if until := s.quarantine(); false && sent.Before(until) {\n		return")},
	{"votes-before-it-is-known", "the first batch on a connection counts for what was known before", one(pinned,
		"	if asks {\n		p.check.heard(err)\n	}\n	ineligible := p.check.server.Eligibility(sent)\n", "	ineligible := p.check.server.Eligibility(sent)\n	if asks {\n		p.check.heard(err)\n	}\n")},
	{"half-a-guard", "quarantine lasts for half of the guard", one(guards,
		"began.Add(s.guard.span())", "began.Add(s.guard.period / 2)")},
	{"promotion-unseen", "only a server's uptime matters, not who it is", one(guards,
		"if s.changed.After(began) {", "if false {")},
	{"asked-once", "a server is asked on its first connection alone", one(verify,
		"v.asked, v.at, v.voter, v.err = false, time.Time{}, quorum.Voter{}, nil", "")},
	{"quarantined-extends", "a server in quarantine extends locks", one(replies,
		"case ineligible != nil && (o.Kind.Takes() || o.Kind == Probe || o.Kind == Extend && number == 1):", "case ineligible != nil && (o.Kind.Takes() || o.Kind == Probe):")},
}

// promoted are bugs that take a server back which was a replica for a while.
var promoted = []bug{
	{"failback-unseen", "a server that keeps its run id is the one it was", one(info,
		"|| before.Replication != i.Replication && i.promoted", "")},
}

// fresh are bugs of clients that come after a fail-over.
var fresh = []bug{
	{"fresh-client-unaware", "a server that is met for the first time was always there", one(guards,
		"return !dated && (now.promoted || now.others())", "return false && dated")},
}
