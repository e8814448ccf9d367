package main

// fenced are bugs of fencing tokens.
var fenced = []bug{
	{"fence-not-raised", "a node does not record the token that it grants", one(propose,
		"  if highest and highest >= 0 and highest < tonumber(ARGV[3]) then\n    return 1", "  if highest and highest >= 0 and highest < tonumber(ARGV[3]) then\n    redis.call('DEL', KEYS[2])\n    return 1")},
	{"fence-ignored", "a node grants any proposed token", one(propose,
		"  if highest and highest >= 0 and highest < tonumber(ARGV[3]) then\n    return 1", "  if true then\n    return 1")},
	{"equal-token-granted", "a node grants a token that it has granted before", one(propose,
		"highest < tonumber(ARGV[3]) then", "highest <= tonumber(ARGV[3]) then")},
	{"fence-lowered", "an extension sets the fence to its own token even if the fence is higher", one(extend,
		"  if highest < tonumber(ARGV[3]) then", "  if true then")},
	{"fence-dies-with-lock", "a node keeps the fence no longer than the key", one(propose,
		"redis.pcall('SET', KEYS[2], ARGV[3], 'PX', ARGV[4], 'GET')", "redis.pcall('SET', KEYS[2], ARGV[3], 'PX', ARGV[2], 'GET')")},
	{"proposes-the-same", "a refused proposal is repeated unchanged", one(fences,
		"max(top+1, now.UnixMicro())", "max(top, 1)")},
	{"later-token-handed-out", "a lock gets the token of the last proposal even if an earlier one won", one(attempt,
		"op := a.won.Op()", "op := a.last().Op()")},
	{"proposals-added-up", "grants of different proposals are added up", one(fences,
		"if last.Tally().Outcome() == quorum.Won && r.fresh(last) {", "if last.Tally().Granted+a.first.Tally().Granted >= last.Tally().Need() {")},
	{"fenced-validity-from-last", "validity counts from the last proposal instead of the first", one(attempt,
		"start := a.first.Start()", "start := a.last().Start()")},
	{"first-proposal-stays", "a key that was granted to the first proposal only is not cleaned up", one(proposals,
		"	ballots := p.first.Ballots()\n", "	ballots := p.last().Ballots()\n")},
	{"fence-kept-for-shorter", "a grant with a shorter FenceRetention shortens how long the fence is kept", one(propose,
		"local keep = left == -1 or left > tonumber(ARGV[4])", "local keep = false")},
	{"queue-keeps-for-shorter", "a waiter's grant with a shorter FenceRetention shortens how long the fence is kept", one(queue,
		"if left == -1 or left > tonumber(ARGV[8]) then", "if false then")},
	{"extend-keeps-for-shorter", "an extension with a shorter FenceRetention shortens how long the fence is kept", one(extend,
		"if left == -1 or left > tonumber(ARGV[4]) then", "if false then")},
	{"held-fence-is-a-grant", "a key that another client holds is granted if the token is higher", one(propose,
		"  return -highest\n", "  if highest < token then\n    return 1\n  end\n  return -highest\n")},
}

// fairlyFenced are bugs of fencing tokens when all clients are fair.
var fairlyFenced = []bug{
	{"newcomer-below-the-fence", "a newcomer with too low a token is refused a free key as if a waiter were ahead of it", one(queue,
		"  if state ~= 3 then\n", "  if verdict ~= 3 or me == '' then\n")},
}

// guarded are bugs of the restart guard.
var guarded = []bug{
	{"no-quarantine", "the votes of a server that may have forgotten count at once", one(guards,
		"if until := s.quarantine(); sent.Before(until) {\n		return", "if until := s.quarantine(); false && sent.Before(until) {\n		return")},
	{"votes-before-it-is-known", "the first batch on a connection counts by the eligibility found earlier", one(pinned,
		"	if asks {\n		p.check.heard(err)\n	}\n	ineligible := p.check.server.Eligibility(sent)\n", "	ineligible := p.check.server.Eligibility(sent)\n	if asks {\n		p.check.heard(err)\n	}\n")},
	{"half-a-guard", "quarantine lasts for half of RestartGuard", one(guards,
		"began.Add(s.guard.span())", "began.Add(s.guard.period / 2)")},
	{"promotion-unseen", "only a server's uptime matters, not its identity", one(guards,
		"if s.changed.After(began) {", "if false {")},
	{"asked-once", "a server is asked for its identity only on its first connection", one(verify,
		"v.asked, v.at, v.voter, v.err = false, time.Time{}, quorum.Voter{}, nil", "")},
	{"quarantined-extends", "the vote of a server in quarantine counts for an extension", one(replies,
		"case ineligible != nil && (o.Kind.Takes() || o.Kind == Probe || o.Kind == Extend && number == 1):", "case ineligible != nil && (o.Kind.Takes() || o.Kind == Probe):")},
}

// promoted are bugs that take a server back that was a replica for a while.
var promoted = []bug{
	{"failback-unseen", "a server that keeps its run id counts as unchanged", one(info,
		"|| before.Replication != i.Replication && i.promoted", "")},
}

// fresh are bugs of clients that start after a fail-over.
var fresh = []bug{
	{"fresh-client-unaware", "a server met for the first time counts as if it had always been there", one(guards,
		"return !dated && (now.promoted || now.others())", "return false && dated")},
}
